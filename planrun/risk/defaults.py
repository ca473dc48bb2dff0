"""The files that programs read without being told, and the programs that read none of a workspace.

A program that is in neither table may run any file: what a step with it runs is not known.
"""

from __future__ import annotations

from planrun.risk.programs import FAMILIES
from planrun.risk.programs.dangerous import REASONS
from planrun.risk.words import names_in

_PYTHON = "pyproject.toml setup.py setup.cfg sitecustomize.py usercustomize.py"
_NODE = "package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml .npmrc .yarnrc .yarnrc.yml pnpm-workspace.yaml .pnpmfile.cjs tsconfig*.json"
_OF_NODE = ".{0}rc* {0}.config.* {0}.conf.* {0}.json .{0}.* {0}-*.json .{0}ignore release.config.* .releaserc* babel.config.* .babelrc* .storybook/* tailwind.config.* .env* angular.json vue.config.*"
_JVM = "*.java *.kt *.groovy *.scala *.class"
_READS = {
    "make gmake bmake remake": "Makefile makefile GNUmakefile BSDmakefile",
    "npm yarn pnpm yarnpkg corepack lerna nx turbo rush changeset": f"{_NODE} lerna.json nx.json project.json turbo.json rush.json .yarn/releases/* .yarn/plugins/*",
    "npx pnpx bunx node nodejs bun deno tsx ts-node esno": f"{_NODE} bunfig.toml deno.json deno.jsonc import_map.json node_modules/.bin/*",
    "eslint prettier stylelint vite webpack rollup esbuild next nuxt markdownlint babel tsup parcel astro svelte-kit storybook commitlint"
    " release-it semantic-release ncu tailwindcss postcss knip depcheck size-limit typedoc jsdoc swc snowpack remix ng"
    " vue-cli-service gatsby craco react-scripts rspack oxlint biome htmlhint standard xo dprint": f"{_NODE} {_OF_NODE}",
    "jest vitest mocha playwright cypress ava nyc c8 karma wdio cucumber-js tap jasmine testcafe codeceptjs protractor": f"{_NODE} {_OF_NODE} cucumber.* *.test.* *.spec.* *.cy.* test.js test.mjs test.ts __tests__/* test/* e2e/* cypress/*",
    "lint-staged": f"{_NODE} .lintstagedrc* lint-staged.config.*",
    "tsc": f"{_NODE} *.ts *.tsx",
    "grunt gulp": f"{_NODE} [Gg]runtfile.* [Gg]ulpfile.*",
    "pytest py.test tox nox ptw": f"{_PYTHON} conftest.py tox.ini noxfile.py pytest.ini .pytest.ini pytest.toml test_*.py *_test.py",
    "unittest nose2 trial stestr": f"{_PYTHON} test*.py *_test.py unittest.cfg .stestr.conf",
    "doctest python python2 python3 pypy pypy3 ipython bpython py pythonw compileall py_compile tabnanny zipfile tarfile pdb cProfile timeit"
    " profile trace": "sitecustomize.py usercustomize.py pyvenv.cfg *.pth",
    "pip pip3 pipx uv uvx poetry hatch pdm pipenv rye flit twine virtualenv venv conda mamba micromamba pip-compile maturin easy_install"
    " python-build hatchling setuptools-scm cibuildwheel": f"{_PYTHON} hatch_build.py hatch.toml uv.toml build.py uv.lock poetry.lock poetry.toml pdm.lock Pipfile* .python-version .pypirc requirements*.txt environment.y*ml constraints*.txt Cargo.toml",
    "coverage black isort mypy pyright flake8 pylint autoflake autopep8 yapf pyupgrade docformatter bandit vulture codespell"
    " ruff lint-imports djlint pydocstyle pycodestyle pyre interrogate deptry pyflakes mutmut bumpversion bump2version tbump"
    " towncrier commitizen cz dmypy stubtest import-linter ty basedpyright": f"{_PYTHON} .{{0}} .{{0}}rc {{0}}.ini {{0}}.toml .{{0}}.* {{0}}.json"
    " {0}config.json .coveragerc tox.ini mypy_plugin.py pylintrc .style.yapf .importlinter .bumpversion.cfg .cz.* newsfragments/*",
    "sphinx-build sphinx-autobuild mkdocs jupyter nbconvert papermill quarto": "conf.py mkdocs.yml mkdocs.yaml jupyter_*config.* _quarto.yml",
    "gunicorn uvicorn hypercorn daphne flask django-admin celery alembic waitress-serve streamlit locust scrapy dagster prefect"
    " airflow dbt behave robot pserve": "gunicorn.conf.py app.py wsgi.py asgi.py main.py .flaskenv .env manage.py settings.py celeryconfig.py alembic.ini env.py locustfile.py scrapy.cfg pyproject.toml dbt_project.yml profiles.yml dagster.yaml prefect.yaml config.toml environment.py *.robot",
    "pre-commit": ".pre-commit-config.yaml .pre-commit-hooks.yaml",
    "git hub": ".gitattributes .gitmodules .lfsconfig .gitignore .mailmap",
    "git-hooks": ".pre-commit-config.yaml *lefthook*.y*ml .husky/* .githooks/* .lintstagedrc* .overcommit.yml",
    "lefthook husky overcommit": "*lefthook*.y*ml .husky/* .overcommit.yml .git-hooks/*",
    "docker docker-compose podman podman-compose buildah nerdctl buildctl kaniko": "Dockerfile* *.Dockerfile *.dockerfile Containerfile* docker-compose*.y*ml compose*.y*ml docker-bake*.* .dockerignore .env",
    "devcontainer": "devcontainer.json .devcontainer.json",
    "kubectl kustomize oc argocd flux": "kustomization.y*ml Kustomization",
    "helm helmfile": "Chart.yaml values*.y*ml helmfile.y*ml *.gotmpl *.tpl templates/*",
    "skaffold": "skaffold.y*ml",
    "tilt": "Tiltfile *.tiltfile tilt_config.json",
    "garden okteto werf devspace": "*garden.y*ml garden.y*ml okteto.y*ml werf*.yaml devspace.yaml",
    "earthly": "Earthfile .earthly/*",
    "dagger": "dagger.json *.cue",
    "terraform tofu terragrunt terramate tflint cdktf": "*.tf *.tf.json *.tofu *.tfvars *.tfvars.json *.hcl .terraformrc cdktf.json *.tftest.*",
    "packer nomad vault consul waypoint": "*.hcl *.pkr.* *.nomad",
    "vagrant": "Vagrantfile",
    "ansible ansible-playbook ansible-galaxy ansible-lint ansible-test ansible-navigator molecule": "ansible.cfg main.y*ml requirements.y*ml hosts inventory* molecule.yml ansible-navigator.y*ml galaxy.yml group_vars/* host_vars/* roles/* library/* filter_plugins/* action_plugins/* callback_plugins/*",
    "salt salt-call salt-ssh": "*.sls Saltfile",
    "puppet chef-client knife kitchen inspec": "*.pp Puppetfile *.rb kitchen.yml .kitchen.yml",
    "pulumi": "Pulumi*.y*ml __main__.py index.ts index.js main.go package.json",
    "cdk sam serverless sls amplify": "cdk.json samconfig.toml template.y*ml serverless.*",
    "vercel netlify wrangler firebase fly flyctl heroku railway now gcloud": "app.y*ml cloudbuild.y*ml cron.yaml dispatch.yaml .gcloudignore .elasticbeanstalk/* vercel.json netlify.toml wrangler.toml wrangler.json* firebase.json fly.toml heroku.yml Procfile railway.*",
    "go golangci-lint staticcheck govulncheck gotestsum ginkgo air ko goreleaser buf mage wire": "go.mod go.sum modules.txt go.work *.go .golangci.* .air.toml .ko.yaml .goreleaser.y*ml buf*.y*ml magefile.go",
    "gofmt goimports gofumpt": "",
    "cargo rustc cross trunk wasm-pack bacon rustdoc": "Cargo.toml Cargo.lock *.rs .cargo/* rust-toolchain rust-toolchain.toml nextest.toml deny.toml clippy.toml .clippy.toml Cross.toml Trunk.toml bacon.toml",
    "rustfmt rustup": "rust-toolchain rust-toolchain.toml rustfmt.toml .rustfmt.toml",
    "cmake ctest cpack ccmake": "CMakeLists.txt CMakePresets.json CMakeUserPresets.json *.cmake CTest*.cmake *.cmake.in",
    "meson ninja samu": "meson.build meson.options meson_options.txt *.ninja",
    "bazel bazelisk buck buck2 pants blaze please plz": "WORKSPACE* MODULE.bazel BUILD BUILD.* BUCK TARGETS *.bzl *.bazel .bazelrc .bazelversion .buckconfig pants*.toml .plzconfig* user.bazelrc tools/bazel",
    "scons waf tup premake premake5 xmake": "SConstruct SConscript wscript Tupfile* premake*.lua xmake.lua",
    "autoreconf autoconf automake aclocal configure libtoolize": "configure.ac configure.in *.am *.in *.m4 configure autogen.sh",
    "gcc g++ clang clang++ cc c++ ld as cpp tcc nvcc": "",
    "qmake xcodebuild xcrun": "*.pro *.pri *.pbxproj *.xcscheme *.xcconfig",
    "mvn mvnw mvnd": f"pom.xml extensions.xml .mvn/* {_JVM} settings.xml",
    "gradle gradlew": f"*.gradle *.gradle.kts gradle.properties gradle-wrapper.* libs.versions.toml {_JVM}",
    "ant": "build.xml build.properties ivy*.xml",
    "sbt mill scala scala-cli bleep": f"*.sbt build.properties build.sc *.scala *.sc mill project/* {_JVM}",
    "java javac kotlinc kotlin groovy jshell jar jbang": f"{_JVM} jbang-catalog.json",
    "lein clj clojure bb": "project.clj deps.edn bb.edn *.clj profiles.clj",
    "dotnet msbuild nuget csc fsi paket cake": "*.csproj *.fsproj *.vbproj *.sln* *.props *.targets *.cs *.fs *.fsx global.json nuget.config NuGet.Config *.cake *.rsp dotnet-tools.json paket.*",
    "pwsh powershell": "*.ps1 *.psm1 *.psd1",
    "ruby irb erb": ".irbrc .ruby-version",
    "rake bundle bundler gem rspec rubocop rails cucumber jekyll fastlane pod thor guard danger cap foreman overmind hivemind"
    " honcho standardrb reek minitest": "Rakefile rakefile Rakefile.rb *.rake Gemfile* gems.rb .bundle/* *.gemspec .rspec *_spec.rb *_test.rb test_*.rb spec_helper.rb rails_helper.rb"
    " .rubocop* *.feature step_definitions/* _config.yml _plugins/* Fastfile Appfile Podfile Thorfile *.thor Guardfile Dangerfile Capfile deploy.rb"
    " Procfile* .foreman config.ru application.rb boot.rb environment.rb .env .cucumber.yml cucumber.yml",
    "puma unicorn rackup": "config.ru puma.rb unicorn.rb Gemfile*",
    "perl prove": "*.t .proverc .perlcriticrc",
    "cpanm cpan carton dzil": "cpanfile* Makefile.PL Build.PL dist.ini",
    "php composer phpunit phpstan psalm pest phpcs artisan drush symfony php-cs-fixer rector": "composer.json composer.lock phpunit.xml* phpstan.neon* psalm.xml* *Test.php bootstrap.php Pest.php phpcs.xml* .phpcs.xml* artisan php.ini .user.ini .php-cs-fixer* rector.php autoload.php",
    "mix elixir iex rebar3 erl escript erlc": "mix.exs mix.lock *.ex *.exs rebar.config* rebar.lock *.erl .iex.exs .formatter.exs .credo.exs erlang.mk sys.config vm.args",
    "swift": "Package.swift Package.resolved *.swift",
    "dart flutter pub melos": "pubspec.* build.yaml dart_test.yaml analysis_options.yaml *.dart melos.yaml",
    "zig": "build.zig build.zig.zon *.zig",
    "nim nimble crystal shards": "*.nim *.nims *.nimble nim.cfg shard.* *.cr",
    "cabal stack ghc ghci runghc runhaskell": "*.cabal cabal.project* stack.yaml package.yaml Setup.hs Setup.lhs .ghci *.hs",
    "dune opam ocaml ocamlfind": "dune dune-project *.opam *.ml .ocamlinit",
    "julia": "Project.toml Manifest.toml *.jl",
    "R Rscript": ".Rprofile .Renviron DESCRIPTION renv.lock renv/activate.R *.R",
    "lua luajit luarocks busted luacheck": "*.rockspec .busted .luacheckrc *_spec.lua init.lua .luarocks/*",
    "emacs emacsclient": ".dir-locals.el .dir-locals-2.el Cask Eask",
    "vi vim nvim ex": ".vimrc .exrc .nvimrc .nvim.lua",
    "gdb lldb": ".gdbinit .lldbinit *-gdb.py",
    "octave matlab": ".octaverc startup.m *.m",
    "sqlite3 psql mysql": ".sqliterc .psqlrc .my.cnf",
    "flyway liquibase atlas sqitch dbmate goose migrate prisma": "flyway.* *.sql liquibase.properties *changelog* atlas.hcl sqitch.* schema.prisma .env",
    "tclsh wish expect": ".tclshrc pkgIndex.tcl",
    "nix nix-build nix-shell nix-instantiate nixos-rebuild devenv devbox": "*.nix flake.lock devenv.* devbox.* .envrc",
    "guix": "manifest.scm guix.scm channels.scm",
    "rg fd fdfind ag": ".ignore .rgignore .fdignore .agignore .gitignore",
    "rsync": ".rsync-filter .cvsignore",
    "just": ".env [Jj]ustfile .justfile JUSTFILE *.just",
    "task go-task": ".env [Tt]askfile* .taskrc.y*ml",
    "mise rtx asdf": "mise*.toml .mise* .tool-versions .config/mise* mise/* mise-tasks/*",
    "direnv": ".envrc .env",
    "zizmor": "zizmor.y*ml .github/workflows/* action.y*ml",
    "invoke inv fab doit pyinvoke poe": "tasks.py fabfile.py dodo.py pyproject.toml invoke.* poe_tasks.*",
    "act": ".github/workflows/* action.y*ml .actrc .secrets .env",
    "gitlab-runner gitlab-ci-local": ".gitlab-ci.yml .gitlab-ci-local*",
    "circleci drone woodpecker-cli jenkinsfile-runner": ".circleci/* .drone.yml .woodpecker* Jenkinsfile",
    "dagu": "dags/*",
    "planrun": ".planrun.yml",
    "rpmbuild dpkg-buildpackage debuild makepkg snapcraft flatpak-builder nfpm fpm": "*.spec debian/* PKGBUILD snapcraft.yaml nfpm.yaml .fpm",
    "shellcheck shfmt hadolint yamllint actionlint taplo clang-format clang-tidy stylua vale checkov trivy semgrep gitleaks"
    " sonar-scanner snyk megalinter super-linter reviewdog cspell typos lychee renovate dependabot grype syft": ".{0}rc* .{0}.* {0}.* .{0} .editorconfig sonar-project.properties .cspell* .snyk .mega-linter.yml _typos.toml renovate.json* .gitleaks.toml",
    "protoc thrift grpcurl": "",
    "latexmk pdflatex xelatex lualatex tectonic": ".latexmkrc latexmkrc *.tex *.sty *.cls",
    "dpp k6 artillery hurl newman": "*.k6.* artillery.y*ml",
    "codecov codecovcli": "codecov.y*ml .codecov.y*ml",
    "screen tmux tmuxinator": ".screenrc .tmux.conf .tmuxinator.yml",
}  # fmt: skip
"""Programs by name -> the patterns of the names of files that they read; one with a folder is that of a whole path.

`{0}` is the name of the program.
"""
_LANGUAGES = {
    ".py .pyw .pyi .pyc .so": "python pypy ipython pytest coverage pylint flake8 mypy sphinx-build alembic scrapy robot behave nox invoke inv fab doit ansible-playbook gunicorn uvicorn hypercorn daphne waitress-serve flask django-admin celery streamlit locust nose2 trial PYTHONPATH PYTHONSTARTUP PYTEST_ADDOPTS PYTEST_PLUGINS DJANGO_SETTINGS_MODULE FLASK_APP",
    ".awk": "gawk awk mawk nawk AWKPATH",
    ".jq .json": "jq gojq jaq",
    ".html .latex .tex .csl .yaml .lua .docx .bib": "pandoc",
    ".c .cc .cpp .o .y .l .f .s .sh .p .r": "make gmake bmake remake",
    ".js .mjs .cjs .ts .mts .cts .tsx .jsx .json .node .wasm": "node nodejs bun deno tsx ts-node esno mocha jest nodemon NODE_OPTIONS --require --import --loader --experimental-loader",
    ".rb .so .ru": "ruby jruby irb rspec rake RUBYOPT rackup puma unicorn",
    ".pl .pm .t .plx": "perl prove PERL5OPT",
    ".php .phar .inc": "php artisan",
    ".lua .so": "lua luajit LUA_INIT busted nvim",
    ".class .java .jar .kt .groovy .scala .clj": "java javac kotlin kotlinc scala groovy clojure clj lein jshell",
    ".el .elc .eln": "emacs emacsclient",
    ".jl": "julia",
    ".hs .lhs": "ghc runghc runhaskell ghci",
    ".erl .beam .ex .exs": "erl elixir escript iex mix",
    ".tcl .tm": "tclsh wish expect",
    ".psm1 .ps1 .psd1": "pwsh powershell Import-Module",
    ".m": "octave matlab",
    ".R .r": "Rscript R",
    ".vim .lua": "vim nvim vi",
    ".scm .ss .rkt .lisp .fasl": "guile racket scheme sbcl",
    ".so .dylib .dll": "LD_PRELOAD LD_LIBRARY_PATH sqlite3",
}  # fmt: skip
LANGUAGES = {name: endings.split() for endings, names in _LANGUAGES.items() for name in names.split()}
"""Programs, variables and options -> the endings that they add to a word for the name of a file."""
# Programs that run no file of a workspace but those that their words name. Missing ones only ask for a look.
_PLAIN = names_in(
    "7z 7za [[ ack actions-runner ag age apropos apt-cache ar aria2c ast asyncio aws azcopy base58 bat bc blkid borg bq busybox calendar caller check-jsonschema chronic chrt clear cloc complete convert cosign cpio crane"
    " createdb csvkit dasel dc delta dirs dis dmesg doctl dot dpkg-deb dpkg-query dropdb eksctl ensurepip exa eza ffmpeg ffprobe fg findmnt flock fuser fzf getcap getent getopts gh git-lfs gpg gpg2 gron gs gsutil history"
    " http http.server httpie https hugo hyperfine inspect ionice iostat jobs journalctl json json.tool last ldd let link linode-cli local logger logout lsblk lsof ltrace magick mapfile mc mdbook memcached miller"
    " mimetypes minisign mkfifo mknod mlr mongodump mongosh mysqldump netstat nm notify-send ntpdate objcopy objdump oci open openssl oras pandoc patchelf pathchk pbcopy pbpaste pdftotext perf pg_dump pg_isready"
    " pg_restore pgrep pickletools pico pidof platform popd port pushd pv qpdf random ranlib rclone readarray readelf readonly redis-cli redis-server reset restic run-parts s3cmd say scc signify site size skopeo sops"
    " sponge sqlite3 ss ssh-add ssh-agent ssh-keygen ssh-keyscan stdbuf strace strip stty sysconfig taskset this tidy time times tokei tokenize toybox tput ts ulimit uuid uuidgen valgrind vmstat w webbrowser wget2"
    " xdg-open xmllint xq xsltproc xsv yes zipapp"
)
_CONTAINED = ("shell", "files", "text", "filters", "system", "archives", "network")
_known: dict[str, list[str]] = {}


def files_read_by(program: str) -> list[str] | None:
    """Return the patterns of what a program reads unasked; None when it is not known, and may run any file."""
    if not _known:
        for family in _CONTAINED:
            _known.update((name, []) for name in FAMILIES[family].split())
        _known.update((name, []) for name in (*_PLAIN, *REASONS))
        _known.update(
            (name, [glob.replace("{0}", name) for glob in globs.split()])
            for names, globs in _READS.items()
            for name in names.split()
        )
    return _known.get(program) if program in _known else _known.get(program.rstrip("0123456789."))
