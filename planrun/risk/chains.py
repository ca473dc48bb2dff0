"""What a text makes and then runs: code that came with the text, or over the network, is not reviewed code."""

from __future__ import annotations

from planrun.risk.levels import high
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding

# Programs whose result has content of its own; mkdir, touch and chmod write as well, but no code.
_WRITERS = names_in(
    "tee cp mv ln install curl wget git sed gsed tar unzip gunzip bunzip2 unxz unzstd gzip bzip2 xz zstd patch split"
    " csplit uniq sort xxd iconv truncate zip jq yq awk"
)
_MOVERS = frozenset(("cp", "mv", "ln", "install", "git mv"))
_FRESH = names_in("tee curl wget")
UNPACKERS = names_in("tar unzip gunzip bunzip2 unxz unzstd gzip bzip2 xz zstd patch")
_CODE_ENDS = tuple(
    names_in(
        ".py .pyi .sh .bash .js .mjs .cjs .ts .mts .cts .jsx .tsx .rb .pl .pm .php .go .rs .java .kt .kts .groovy"
        " .gradle .scala .c .cc .cpp .h .hpp .cs .fs .csproj .sln .props .targets .ex .exs .erl .lua .mk .mak .cmake"
        " .pth .gemspec .rake .ini .cfg .toml .swift .zig .nim .jl .r .vue .svelte"
    )
)
_CODE_FILES = names_in(
    "makefile gnumakefile rakefile gemfile justfile taskfile.yml taskfile.yaml package.json cmakelists.txt pom.xml"
    " composer.json build.xml dockerfile .pre-commit-config.yaml .eslintrc .eslintrc.json .babelrc .yarnrc.yml"
    " .mocharc.yml .mocharc.json pnpm-workspace.yaml lerna.json nx.json turbo.json tsconfig.json deno.json pnpmfile.cjs"
    " requirements.txt requirements.lock package-lock.json yarn.lock pnpm-lock.yaml cargo.lock go.mod go.sum"
)


class Trace:
    """What one command writes and runs; paths are workspace-relative, or absolute in places that count as such."""

    __slots__ = (
        "code", "folders", "fresh", "links", "operands", "overwrites", "patches", "programs", "runs",
        "streams", "sweeps", "writes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.fresh: list[str] = []  # of them, those a redirection writes: their content comes with the text
        self.overwrites: list[
            str
        ] = []  # whose content is lost if there is any; of folders, with `/` at the end
        self.runs: list[str] = []
        self.links: list[str] = []  # symbolic ones that it makes
        self.sweeps: list[tuple[str, str, str]] = []  # what it reads that no word names; see names.Sweep
        self.folders: list[str] = []
        self.operands: list[str] = []  # of programs that are given some, as paths
        self.programs: list[str] = []
        self.patches = False  # it changes files by what it is sent
        self.streams = False  # it unpacks what it is sent
        self.code = False  # it runs code of the project


class History:
    """What the commands of a text have made so far."""

    def __init__(self) -> None:
        self.overwrites: list[str] = []
        self.sweeps: list[tuple[str, str, str]] = []
        self._links: list[str] = []
        self._made: set[str] = set()
        self._brought: set[str] = set()
        self._fetched = False
        self._loose = ""  # why any code may be what the text brought along

    def judge(self, trace: Trace) -> Finding | None:
        """Return why a command runs what the text has made before it; then take note of what it makes itself."""
        found = self._runs_made(trace) or self._leads_on(trace)
        self._remember(trace)
        return found

    def _leads_on(self, trace: Trace) -> Finding | None:
        """Return why a link that the text has made may lead elsewhere by now: it is moved, or written through."""
        moved = trace.operands if not _MOVERS.isdisjoint(trace.programs) else []
        for link in self._links:
            through = [path for path in (*trace.writes, *trace.fresh) if f"{path}/".startswith(f"{link}/")]
            if through or [path for path in moved if f"{link}/".startswith(f"{path}/")]:
                return high(
                    f"{link}: a link that the same text has made, and then moves or writes through", "writes"
                )
        return None

    def _runs_made(self, trace: Trace) -> Finding | None:
        for path in trace.runs:
            if any(
                path == made or path.startswith(made + "/") for made in self._made | self._brought if made
            ):
                return high(f"{path}: runs what the same text has made", "code")
        if trace.code and self._loose:
            return high(f"runs code after {self._loose}", "code")
        if trace.code:
            for folder in trace.folders + trace.operands:
                if any(folder == made or folder.startswith(made + "/") for made in self._brought if made):
                    return high(f"{folder}: runs code that the same text has fetched", "code")
        return None

    def _remember(self, trace: Trace) -> None:
        programs = set(trace.programs)
        self._links += trace.links
        if programs & {"curl", "wget"} or "git clone" in programs:
            self._fetched = True
            self._brought.update(trace.writes)
        if programs & _WRITERS:
            self._made.update(trace.writes)
        self._made.update(trace.fresh)
        if trace.streams or (self._fetched and programs & UNPACKERS):
            self._loose = "unpacking what was fetched"
        fresh = trace.fresh + (trace.writes if programs & _FRESH else [])
        for path in fresh:
            name = path.rpartition("/")[2].lower()
            if name.endswith(_CODE_ENDS) or name in _CODE_FILES:
                self._loose = f"writing {name}"
