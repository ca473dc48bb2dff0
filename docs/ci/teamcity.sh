#!/bin/sh
# The command line step of a TeamCity build. Blocks, problems, parameters and test results arrive by service messages.
exec planrun execute plans/release.yml --policy ci/policy.yml
