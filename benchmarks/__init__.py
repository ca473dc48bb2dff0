"""Speed and size of planrun beside its peers, as ratios taken in one run on one machine."""
