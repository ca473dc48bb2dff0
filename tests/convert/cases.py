r"""Files that go-task, just and make run as the plans do that they become; constructs that are left to a person.

`ALIKE`: green or red, the log of `show` and the files are the same. `LEFT`: the plan does not run before somebody has
filled in what is abstract. In Makefiles `\t` stands for a tab.
"""

from __future__ import annotations

from tests.convert.alike import Case


def _make(text: str, goal: str = "", **given: object) -> Case:
    return Case("make", text, goal, **given)  # type: ignore[arg-type]


def _just(text: str, goal: str = "", **given: object) -> Case:
    return Case("just", text, goal, **given)  # type: ignore[arg-type]


def _task(text: str, goal: str = "", **given: object) -> Case:
    return Case("task", f'version: "3"\n{text}', goal, **given)  # type: ignore[arg-type]


UP = ".PHONY: all\nall: a.up b.up\n\\tshow $^\n%.up: %.txt\n\\ttr a-z A-Z <$< >$@\n\\tshow $*\n"
TWICE = ".PHONY: all a b c\nall: a b\na: c\n\\tshow a $(shell echo 1)\nb: c\n\\tshow b\nc:\n\\tshow c\n"
MAKE: dict[str, Case] = {
    "a failure of a line with set does not count": _make(".PHONY: a\na:\n\\t-set -e; false; show z\n\\tshow y\n"),
    "order": _make(".PHONY: a b c\na: b c\n\\tshow a\nb:\n\\tshow b\nc: b\n\\tshow c\n"),
    "escaped colon": _make(
        "start: tools\\:lint\n\\tshow start\ntools\\:lint:\n\\tshow right\nlint:\n\\tshow wrong\n.PHONY: start lint\n", "start"
    ),
    "escaped colon of a second target": _make(".PHONY: a db\\:up\na db\\:up:\n\\tshow $@\n", "db:up"),
    "escaped colon of a first target": _make(".PHONY: a db\\:up\na db\\:up:\n\\tshow $@\n", "a"),
    "escaped blank": _make(".PHONY: all\nall: a\\ b\n\\tshow all\na\\ b:\n\\tshow 'a b'\n"),
    "escaped number sign": _make(".PHONY: all\nall: a\\#b\n\\tshow all\na\\#b:\n\\tshow number\n"),
    "grouped targets": _make(".PHONY: all\nall: x y z\nx y z &:\n\\tshow made\n"),
    "several targets of one rule": _make(".PHONY: all x y\nall: x y\nx y:\n\\tshow $@\n"),
    "a missing prerequisite": _make(".PHONY: all b\nall: b missing.txt\n\\tshow all\nb:\n\\tshow b\n"),
    "a file as prerequisite": _make(".PHONY: all\nall: there.txt\n\\tshow all\n", files={"there.txt": ""}),
    "rules of make itself": _make("prog: prog.c\n", files={"prog.c": "int main(void) { return 0; }\n"}),
    "rules of make itself for a name": _make(".PHONY: all\nall: tool\n\\tshow all\n", files={"tool.sh": "echo\n"}),
    "two recipes": _make(".PHONY: a\na:\n\\tshow one\na:\n\\tshow two\n"),
    "two lists of prerequisites": _make(".PHONY: a b c\na: b\na: c\n\\tshow a\nb c:\n\\tshow $@\n"),
    "implicit variables": _make(".PHONY: a\na:\n\\tshow $(CC) $(CFLAGS) $(RM)\n"),
    "implicit variables of the environment": _make(
        ".PHONY: a\na:\n\\tshow $(CC) $(CFLAGS)\n", env={"CC": "zzz", "CFLAGS": "-O2 -Wall"}
    ),
    "variables that are not set": _make('.PHONY: a\na:\n\\tshow "$$NOPE" $(NOPE) ${NOPE}x $N\n'),
    "defaults": _make(".PHONY: a\nN ?= app\na:\n\\tshow $(N) '$(N)' \"$(N)x\"\n"),
    "defaults that the environment overrides": _make(
        "N ?= app\n.PHONY: a\na:\n\\tshow $(N) '$(N)' \"$(N)x\"\n", env={"N": "b c"}
    ),
    "values that the environment does not override": _make("N = app\n.PHONY: a\na:\n\\tshow $(N)\n", env={"N": "b"}),
    "empty in the environment": _make("N ?= app\n.PHONY: a\na:\n\\tshow [$(N)] $(CC)\n", env={"N": "", "CC": ""}),
    "a shell variable of the same name": _make(".PHONY: a\na:\n\\tN=1; show [$(N)]\n"),
    "a file of the target's name": _make("a:\n\\tshow a\n", files={"a": ""}),
    "a folder of the target's name": _make("a:\n\\tshow a\n", files={"a/b": ""}),
    "no file of the target's name": _make("a:\n\\tshow a\n"),
    "failures that do not count": _make(
        ".PHONY: a\na:\n\\t-show x; false\n\\t- false\n\\t@-false\n\\tfalse && true\n\\tshow never\n"
    ),
    "a shell for each line": _make(".PHONY: a\na:\n\\tcd sub; show $$(basename $$PWD)\n\\tx=1\n\\tshow \"$$x\"\n", files={"sub/x": ""}),
    "ends of lines": _make(".PHONY: a\na:\n\\tshow one \\\n\\t  two\n\\tshow 'a\\\n\\tb'\n\\tshow x; exit 0\n\\tshow y\n\\texec true\n\\tshow z\n"),
    "a failure in a list": _make(".PHONY: a\na:\n\\tfalse; show one\n\\tshow two | false\n\\tshow three\n"),
    "a failure in a substitution": _make(".PHONY: a\na:\n\\tshow `false; echo x` $$(false; echo y)\n\\tshow z\n"),
    "one shell": _make(".PHONY: a\n.ONESHELL:\na:\n\\tx=1\n\\t@show $$x\n\\tfalse\n\\tshow end\n"),
    "a strict shell": _make(
        "SHELL := /bin/bash\n.SHELLFLAGS := -eu -o pipefail -c\n.PHONY: a\na:\n\\tshow one\n\\tfalse | true\n\\tshow never\n"
    ),
    "bash": _make("SHELL := bash\n.PHONY: a\na:\n\\t[[ a == a ]] && show yes $$NOPE\n\\tfalse; show on\n"),
    "variables of a target": _make(".PHONY: a b\na: X = 1\na: b\n\\tshow a $(X)\nb:\n\\tshow b $(X)\n"),
    "exported variables of a target": _make(".PHONY: a b\na: export X=1\na: b\n\\tshow $$X\nb:\n\\tshow b $$X\n"),
    "foreach": _make("L = $(foreach x,a b,<$(x)>)\n.PHONY: a\na:\n\\tshow '$(L)' $(words $(L))\n"),
    "call": _make("f = [$(1)-$(2)]\n.PHONY: a\na:\n\\tshow '$(call f,x,y)'\n"),
    "eval": _make("$(eval X := 3)\n.PHONY: a\na:\n\\tshow $(X)\n"),
    "shell": _make("V := $(shell echo 1; echo 2)\n.PHONY: a\na:\n\\tshow $(V)\n"),
    "wildcard": _make(".PHONY: a\na: $(wildcard *.x)\n\\tshow $^\n", files={"1.x": "", "2.x": ""}),
    "substitution": _make("S = a.c b.c\n.PHONY: a\na:\n\\tshow $(S:.c=.o) $(patsubst %.c,%.d,$(S))\n"),
    "a condition on the environment": _make(
        "ifeq ($(X),1)\nA=yes\nelse\nA=no\nendif\n.PHONY: a\na:\n\\tshow $(A)\n", env={"X": "1"}
    ),
    "a condition in a recipe": _make(".PHONY: a\na:\nifdef X\n\\tshow x\nelse\n\\tshow y\nendif\n\\tshow z\n", env={"X": "1"}),
    "a condition around the default": _make("ifdef X\nall:\n\\tshow x\nelse\nall:\n\\tshow y\nendif\n", env={"X": "1"}),
    "a file that is older": _make(
        "out.txt: in.txt\n\\tcat in.txt > out.txt; show cat\nall: out.txt\n\\tshow all\n.PHONY: all\n", "all", files={"in.txt": "x"}
    ),
    "pattern rules": _make(UP, files={"a.txt": "a", "b.txt": "b"}),
    "static patterns": _make("T = a b\n.PHONY: $(T) all\nall: $(T)\n$(T): %:\n\\tshow $@ $*\n"),
    "double colons": _make("a::\n\\tshow 1\na::\n\\tshow 2\n"),
    "make runs two, and both need one": _make(TWICE),
    "include": _make("include inc.mk\n.PHONY: a\na: z\n\\tshow $(V)\n", "a", files={"inc.mk": "V=7\nz:\n\\tshow z\n"}),
    "include of what is missing": _make("-include nope.mk\n.PHONY: a\na:\n\\tshow $(V)x\n"),
    "include of what must be there": _make("include nope.mk\n.PHONY: a\na:\n\\tshow x\n"),
    "define": _make("define D\nshow one\nfalse\nshow two\nendef\n.PHONY: a\na:\n\\t$(D)\n"),
    "recursion": _make(".PHONY: a\na:\n\\t$(MAKE) b\n\\t$(MAKE) -C sub\nb:\n\\tshow b\n", files={"sub/Makefile": "c:\n\tshow c\n"}),
    "export": _make("export V := 5\nW = 6\nexport W\n.PHONY: a\na:\n\\tshow $$V $$W\n"),
    "export of all": _make("V := 5\nexport\n.PHONY: a\na:\n\\tshow $$V\n"),
    "a variable that make does not export": _make("V := 5\n.PHONY: a\na:\n\\tshow $$V\n"),
    "a variable of the environment that make changes": _make("V := 5\n.PHONY: a\na:\n\\tshow $$V\n", env={"V": "6"}),
    "a recipe behind a semicolon": _make(".PHONY: a\na: ; show one; show two\n"),
    "quotes and comments": _make(".PHONY: a\na:\n\\tshow 'it'\\''s' \"a # b\" # comment\n\\t# none\n\\tshow x\n"),
    "quotes that are not closed": _make(".PHONY: a\na:\n\\tshow it's\n\\tshow that's\n"),
    "words of a shell in several lines": _make(".PHONY: a\na:\n\\tif true; then\n\\tshow x\n\\tfi\n"),
    "a circle": _make("a: b\n\\tshow a\nb: a\n\\tshow b\n.PHONY: a b\n"),
    "order-only": _make(".PHONY: a\na: | d\n\\tshow a\nd:\n\\tmkdir d; show d\n"),
    "dollar signs": _make(".PHONY: a\na:\n\\tshow ${HOME:+x} $${HOME:+x} '$${{ params.x }}' '$$'\n"),
    "signs in variables": _make("Q=@\n.PHONY: a\na:\n\\t$(Q)show a\n\\t$(P)show b\n\\t$(S)false\n\\tshow c\n", env={"S": "-"}),
    "flags of make": _make("MAKEFLAGS += -k\nall: a b\na:\n\\tfalse\nb:\n\\tshow b\n"),
    "nothing to do": _make(".PHONY: a\na:\n"),
    "nothing but a comment": _make(".PHONY: a\na:\n\\t#only comment\n\\t@:\n"),
    "the last of two values": _make("A = 1\nB = $(A)\nC := $(A)\nA = 2\nC += 3\n.PHONY: a\na:\n\\tshow $(A) $(B) $(C)\n"),
    "the default goal": _make(".DEFAULT_GOAL := b\n.PHONY: a b\na:\n\\tshow a\nb:\n\\tshow b\n"),
    "lines ended by CR and LF": _make(".PHONY: a\na:\n\\tshow a\n\\tshow b\n"),
    "automatic variables": _make(".PHONY: a b c\na: b c b\n\\tshow $@ $< $^ $+\nb c:\n\\t@true\n"),
    "secondary expansion": _make(".SECONDEXPANSION:\n.PHONY: a b\na: $$(X)\n\\tshow a\nX = b\nb:\n\\tshow b\n", "a"),
    "ignored failures": _make(".PHONY: a\n.IGNORE: a\na:\n\\tfalse\n\\tshow a\n"),
    "a variable made of itself": _make("A = $(A)\n.PHONY: a\na:\n\\tshow $(A)\n"),
}  # fmt: skip

JUST: dict[str, Case] = {
    "order": _just("a: b\n  show a\nb:\n  show b\n"),
    "variadic arguments": _just("a: (v \"a b\" \"c\")\nv *args:\n  show {{args}}\n"),
    "no variadic arguments": _just("a *x:\n  show [{{x}}]\n"),
    "defaults of parameters": _just("a x=\"1\" y=(x+\"2\") z='it':\n  show {{x}} {{y}}\n"),
    "a default with blanks": _just("a x=\"p q\":\n  show {{x}} \"{{x}}\"\n"),
    "other arguments are other recipes": _just("a: (b \"1\") (b \"2\") (b \"1\")\nb x:\n  show {{x}}\n"),
    "arguments handed on": _just("a x=\"p\": (b x)\n  show {{x}}\nb y:\n  show b{{y}}\n"),
    "later dependencies": _just("a: b && c b\n  show a\nb:\n  show b\nc: b\n  show c\n"),
    "needed by two": _just("a: b c\n  show a\nb: d\nc: d\n  show c\nd:\n  show d\n"),
    "backticks": _just("v := `echo 1.2`\nw := v + \"-x\"\na:\n  show {{w}} '{{v}}' 'v{{v}}w' \"{{v}}\"\n"),
    "backticks that fail": _just("v := `exit 3`\na:\n  show a\n"),
    "backticks that nothing reads": _just("v := `show once`\na: b\n  show a\nb:\n  show b\n"),
    "backticks with several lines": _just("v := `printf 'a b\\nc\\n'`\na:\n  show \"{{v}}\"\n"),
    "failures": _just("a:\n  -false\n  @show x\n  @-false\n  -@false\n  false\n  show y\n"),
    "failures in lists": _just("a:\n  false; show one\n  false && true\n  show two\n"),
    "a shell for each line": _just("a:\n  cd sub || true; x=1\n  show \"${x:-unset}\"\n  show $(basename $PWD)\n", files={"sub/x": ""}),
    "unset variables fail": _just("a:\n  show one\n  show \"$NOPE\"\n"),
    "exit": _just("a:\n  exit 0\n  show after\n  exec true\n  show last\n"),
    "a strict shell": _just("set shell := [\"bash\", \"-euo\", \"pipefail\", \"-c\"]\na:\n  show a\n  -false; show b\n  false | true\n  show c\n"),
    "bash": _just("set shell := ['bash', '-c']\na:\n  [[ a == a ]] && show \"x$NOPE\"\n  false; show y\n"),
    "a script of bash": _just("a:\n  #!/usr/bin/env bash\n  show one\n  false\n  show two $NOPE\n"),
    "a strict script of bash": _just("a:\n  #!/usr/bin/env -S bash -e\n  show one\n  false\n  show two\n"),
    "a script of Python": _just("a:\n  #!/usr/bin/env python3\n  import os\n  if True:\n      os.system('show {{v}}')\nv := \"py\"\n"),
    "exported variables": _just("export V := \"x y\"\na:\n  show \"$V\"\n"),
    "all variables exported": _just("set export\nV := \"x y\"\na p=\"q r\":\n  show \"$V\" \"$p\"\n"),
    "exported parameters": _just("a $p=\"q r\":\n  show \"$p\"\n"),
    "a file of variables": _just("set dotenv-load\na:\n  show \"$E\"\n", files={".env": "E=1\n"}),
    "no file of variables": _just("set dotenv-load\na:\n  show \"${E:-no}\"\n"),
    "the environment": _just("x := env(\"X\", \"d\")\na:\n  show {{x}} \"{{x}}y\" 'z{{x}}'\n", env={"X": "1 2"}),
    "not in the environment": _just("x := env(\"X\", \"d\")\na:\n  show {{x}} \"{{x}}y\" 'z{{x}}'\n"),
    "missing in the environment": _just("x := env(\"X\")\na:\n  show {{x}}\n"),
    "other systems": _just("[linux]\na:\n  show l\n[macos]\na:\n  show m\n", "a"),
    "functions": _just("a:\n  show {{ quote(\"it's\") }} {{ \"a\" / \"b\" }}\n"),
    "braces": _just("a:\n  show {{ '{{x' }} {{{{y}}\n"),
    "an alias by name": _just("alias z := a\na:\n  show a\n", "z"),
    "optional import": _just("import? 'x.just'\na:\n  show a\n"),
    "lines that go on": _just("a:\n  show one \\\n    two\n  if true; then \\\n    show three; \\\n  fi\n"),
    "a folder for all": _just("set working-directory := 'd'\na:\n  show $(basename $PWD)\n", files={"d/x": ""}),
    "a folder for one": _just("[working-directory: 'd']\na:\n  show $(basename $PWD)\nb:\n  show\n", files={"d/x": ""}),
    "the folder of the file": _just("a:\n  cd /; show $(basename {{justfile_directory()}})\n"),
    "private recipes": _just("_p:\n  show p\n[private]\nq: _p\n  show q\na: _p q\n  show a\n", "a"),
    "attributes": _just("# doc\n[group('g'), no-exit-message]\n[doc('x')]\na:\n  show a\n"),
    "comments": _just("set ignore-comments\na:\n  # c\n  show x # y\n"),
    "comments of the shell": _just("a:\n  # c\n  show x # y\n  #show z\n"),
    "empty lines": _just("a:\n  show x\n\n  show y\n\nb:\n  show z\n"),
    "strings in several lines": _just("x := '''\n  a\n  b\n'''\na:\n  show '{{x}}'\n"),
    "the first recipe": _just("first:\n  show d\ndefault:\n  show o\n"),
    "the marked recipe": _just("first:\n  show d\n[default]\nother:\n  show o\n"),
    "a recipe that is a word": _just("set:\n  show set\nimport: set\n  show import\n", "import"),
    "no parameters": _just("a b:\n  show {{b}}\n"),
    "a plan's own signs": _just("a:\n  show '${{{{ params.x }}' '$'\n"),
    "values that are used as code": _just("x := \"; show bad\"\na:\n  show ok {{x}}\n"),
}  # fmt: skip

INCLUDED = {
    "docs/Taskfile.yml": 'version: "3"\nvars: {O: o}\ntasks:\n  b: {deps: [c], cmds: ["show b {{.O}} {{.G}}", {task: ":x"}]}\n'
    "  c: show c $(basename $PWD)\n",
    "e.yml": 'version: "3"\ntasks:\n  e: show e {{.K}}\n',
}
TASK: dict[str, Case] = {
    "one command": _task("tasks:\n  default: show a\n"),
    "a task that two need runs twice": _task(
        "tasks:\n  default: {deps: [a, b], cmds: [show d]}\n  a: {deps: [c], cmds: [show a]}\n  b: {deps: [c], cmds: [show b]}\n"
        "  c: show c\n", orderless=True
    ),
    "run: once": _task(
        "tasks:\n  default: {deps: [a, b], cmds: [show d]}\n  a: {deps: [c], cmds: [show a]}\n  b: {deps: [c], cmds: [show b]}\n"
        "  c: {run: once, cmds: [show c]}\n", orderless=True
    ),
    "run: once, long before": _task(
        "tasks:\n  default: {cmds: [{task: g}, {task: m}, {task: r}]}\n  g: {run: once, cmds: [show g]}\n"
        "  m: sleep 0.3; show m\n  r: {deps: [g], cmds: [show r]}\n"
    ),
    "run: when_changed": _task(
        "tasks:\n  default: {deps: [{task: a, vars: {X: 1}}, {task: a, vars: {X: 1}}, {task: a, vars: {X: 2}}], "
        "cmds: [{task: a, vars: {X: '2'}}]}\n  a: {run: when_changed, cmds: ['show a {{.X}}']}\n", orderless=True
    ),
    "a command of a variable that fails": _task("vars: {X: {sh: exit 3}}\ntasks:\n  default: show hi\n"),
    "a command of a variable": _task("vars: {X: {sh: 'echo a b'}}\ntasks:\n  default:\n    - show {{.X}} \"{{.X}}\" '{{.X}}'\n"),
    "a command of a variable in two steps": _task(
        "vars: {X: {sh: 'show once; echo a'}, Y: '{{.X}}y', Z: {sh: 'echo {{.Y}}z'}}\n"
        "tasks:\n  default: {cmds: ['show {{.Y}}', {task: b}]}\n  b: show {{.Z}}\n"
    ),
    "a command of a task's variable before what it needs": _task(
        "tasks:\n  default: {vars: {V: {sh: cat f}}, deps: [m], cmds: ['show {{.V}}']}\n  m: echo new > f\n", files={"f": "old\n"}
    ),
    "several lines": _task("tasks:\n  default:\n    cmds:\n      - |\n        false\n        show x\n"),
    "several lines that go on": _task("tasks:\n  default:\n    cmds:\n      - |\n        false && true\n        show x\n      - show y\n"),
    "a failure in a pipe": _task("tasks:\n  default: {cmds: ['false | true', show on]}\n"),
    "set: pipefail": _task("set: [pipefail]\ntasks:\n  default: {cmds: ['false | true', show no]}\n"),
    "a failure in a substitution": _task("tasks:\n  default:\n    cmds:\n      - cmd: show $(false; echo hi)\n      - show `echo q`\n"),
    "the environment": _task(
        "tasks:\n  default:\n    cmds:\n      - 'show \"[{{.NOPE}}]\" [{{.A}}] [{{.E | default \"d\"}}] [{{.A | default \"d\"}}]'\n",
        env={"A": "1", "E": ""},
    ),
    "a default that the environment overrides": _task("vars: {M: '{{.M | default \"d\"}}'}\ntasks:\n  default: show {{.M}}\n", env={"M": "e"}),
    "a default": _task("vars: {M: '{{.M | default \"d\"}}'}\ntasks:\n  default: show {{.M}} '{{.M}}'\n"),
    "env": _task("env: {A: file}\ntasks:\n  default: {env: {B: tb}, cmds: ['show $A {{.A}} $B']}\n"),
    "env that the caller overrides": _task(
        "env: {A: file}\ntasks:\n  default: {env: {B: tb}, cmds: ['show $A {{.A}} $B']}\n", env={"A": "1", "B": "2"}
    ),
    "env of a command": _task("env: {A: {sh: echo a b}}\ntasks:\n  default: {env: {B: {sh: echo c}}, cmds: ['show \"$A\" $B']}\n"),
    "the first of two files of variables": _task(
        "dotenv: [one.env, two.env]\ntasks:\n  default: show \"$A\" \"$B\"\n", files={"one.env": "A=1\n", "two.env": "A=2\nB='3 4'\n"}
    ),
    "no file of variables": _task("dotenv: [none.env]\ntasks:\n  default: show \"[$A]\"\n"),
    "which value counts": _task(
        "vars: {V: g, W: '{{.V}}-w'}\ntasks:\n  default:\n    cmds: ['show {{.V}} {{.W}}', {task: b, vars: {V: call}}, {task: c}]\n"
        "  b: {vars: {V: own}, cmds: ['show b {{.V}} {{.W}}', {task: d}]}\n  c: {vars: {V: '{{.V | default \"own\"}}'}, cmds: ['show c {{.V}}']}\n"
        "  d: {cmds: ['show d {{.V}} {{.W}}']}\n"
    ),
    "values handed on": _task(
        "vars: {V: g}\ntasks:\n  default: {cmds: [{task: b, vars: {V: call, W: '{{.V}}2'}}]}\n  b: {cmds: ['show {{.V}} {{.W}}']}\n"
    ),
    "a later variable": _task("vars: {A: '[{{.B}}]', B: b}\ntasks:\n  default: show {{.A}} {{.B}}\n"),
    "preconditions": _task("tasks:\n  default: {preconditions: [{sh: 'test -e no', msg: \"it's no\"}], deps: [b], cmds: [show x]}\n  b: show b\n"),
    "preconditions that hold": _task("tasks:\n  default: {preconditions: [test -e f, '[ 1 = 1 ]'], cmds: [show x]}\n", files={"f": ""}),
    "status": _task("tasks:\n  default: {status: [test -e f], deps: [b], cmds: [show x]}\n  b: show b\n", files={"f": ""}),
    "status that does not hold": _task("tasks:\n  default: {status: [test -e f, test -e Taskfile.yml], deps: [b], cmds: [show x]}\n  b: show b\n"),
    "sources": _task("tasks:\n  default: {sources: [a.txt], generates: [b.txt], cmds: ['cp a.txt b.txt', show ran]}\n", files={"a.txt": "x"}),
    "ignore_error": _task("tasks:\n  default: {ignore_error: true, cmds: ['false', show y]}\n"),
    "ignore_error of a command": _task("tasks:\n  default: {cmds: [{cmd: 'false; show n', ignore_error: true}, {cmd: 'false', ignore_error: true}, show y]}\n"),
    "requires": _task("tasks:\n  default: {requires: {vars: [ZZ]}, cmds: ['show {{.ZZ}}']}\n", args=["ZZ=v"]),
    "requires what is not given": _task("tasks:\n  default: {requires: {vars: [ZZ]}, cmds: [show y]}\n"),
    "for": _task(
        "tasks:\n  default:\n    cmds:\n      - {for: [x y, z], cmd: 'show {{.ITEM}}'}\n"
        "      - {for: {matrix: {A: [1, 2], B: [p]}}, cmd: 'show {{.ITEM.A}}{{.ITEM.B}}'}\n"
        "      - {for: {var: L, as: K}, task: b, vars: {I: '{{.K}}'}}\n  b: 'show b {{.I}}'\nvars: {L: m n}\n"
    ),
    "platforms": _task("tasks:\n  default: {cmds: [{cmd: show no, platforms: [windows]}, {cmd: show yes, platforms: [linux]}, {task: w}]}\n  w: {platforms: [darwin], cmds: [show w]}\n"),
    "a name that is filled in": _task("tasks:\n  default: {cmds: [{task: '{{.TASK}}-x'}]}\n  default-x: show {{.TASK}}\n"),
    "a shell for each command": _task("tasks:\n  default: {cmds: ['x=1; show $x', 'show \"${x:-no}\"', 'export Y=2', 'show \"${Y:-no}\"', exit 0, 'cd /', 'show $(basename $PWD)']}\n"),
    "braces": _task("tasks:\n  default: {cmds: ['show {{`{{.X}}`}} \"{{/* c */}}\" {{\"{{\"}}']}\n"),
    "functions": _task(
        "vars: {N: 3.5, T: true, Z: 1}\ntasks:\n  default:\n    cmds: ['show {{.N}} {{.T}} {{q \"x y\"}} {{.X | default .Z}} {{OS}} {{.T | default 2}}']\n"
    ),
    "includes": _task(
        "includes: {d: ./docs, f: {taskfile: ./docs, dir: docs, aliases: [g]}, e: {taskfile: ./e.yml, flatten: true, vars: {K: v}}}\n"
        "vars: {G: glob}\ntasks:\n  default: {cmds: [{task: d:b}, {task: e}, {task: g:c}]}\n  x: show rootx\n", files=INCLUDED
    ),
    "a folder": _task("tasks:\n  default: {dir: sub, cmds: ['show $(basename $PWD)']}\n", files={"sub/x": ""}),
    "a folder that is not there": _task("tasks:\n  default: {dir: new/one, cmds: ['show $(basename $PWD)', 'echo x > f']}\n"),
    "a folder below that of the file": _task("tasks:\n  default: {dir: '{{.ROOT_DIR}}/sub', cmds: ['show $(basename $PWD)']}\n", files={"sub/x": ""}),
    "calls between commands": _task("tasks:\n  default: {cmds: [show a, {task: b}, show c]}\n  b: {cmds: [show b, 'false', show n]}\n"),
    "an alias": _task("tasks:\n  a: {aliases: [b], desc: Does a, cmds: [show a]}\n", "b"),
    "cmd": _task("tasks:\n  default: {cmd: show one, silent: true}\n"),
    "a list": _task("tasks:\n  default: [show x, show y]\n"),
    "if of a command": _task("tasks:\n  default: {cmds: [{cmd: show m, if: 'false'}, {cmd: show n, if: test -e Taskfile.yml}]}\n"),
    "if of a task": _task("tasks:\n  default: {if: 'test -e no', cmds: [show a]}\n"),
    "nothing to do": _task("tasks:\n  default: {desc: nothing}\n"),
    "words of the command line": _task("tasks:\n  default: {cmds: ['show [{{.CLI_ARGS}}]']}\n"),
}  # fmt: skip

LEFT: dict[str, Case] = {
    "just: if": _just("x := \"a\" + \"b\"\na:\n  show {{x + \"c\"}} {{ if x == \"ab\" { \"yes\" } else if x == \"q\" { \"r\" } else { \"no\" } }}\n"),
    "just: if not": _just("x := \"q\"\na:\n  show {{ if x == \"ab\" { error(\"no\") } else if x != \"q\" { \"r\" } else { \"no\" } }}\n"),
    "just: the machine": _just("x := if os() == \"linux\" { \"L\" } else { \"O\" }\na:\n  show {{x}} {{os_family()}}\n"),
    "just: import": _just("import 'x.just'\na: b c\n  show a\nc:\n  show mine\n", "a", files={"x.just": "b:\n  show b\n"}),
    "just: variadic arguments by position": _just("set positional-arguments\na: (v \"a b\" \"*\")\nv *args:\n  show \"$@\"\n"),
    "just: the default of variadic arguments by position": _just("[positional-arguments]\nv *args='x y':\n  show \"$@\" $1\n"),
    "just: a script by an attribute": _just("[script(\"bash\")]\na:\n  show s\n  false\n  show t\n"),
    "just: a script of the default": _just("[script]\na:\n  show s\n  false\n  show t\n"),
    "task: wildcards": _task("tasks:\n  default: {cmds: [{task: 'b:foo-x'}]}\n  'b:*-*': {cmds: ['show {{index .MATCH 0}} {{index .MATCH 1}}']}\n"),
    "task: if": _task("vars: {V: g}\ntasks:\n  default:\n    cmds: ['show {{if eq .V \"g\"}}yes{{else}}no{{end}} {{if eq .V \"x\"}}{{else if .V}}b{{end}}']\n"),
    "task: if of the environment": _task("tasks:\n  default: {cmds: ['show {{if .VERB}}-v{{end}} x']}\n", env={"VERB": "1"}),
    "task: range": _task("vars: {L: m n}\ntasks:\n  default:\n    - 'show \"{{range $i, $e := splitList \" \" .L}}{{$i}}{{$e}};{{end}}\" {{range splitList \" \" .L}}<{{.}}>{{end | quote}}'\n".replace("{{end | quote}}", "{{end}}")),
    "task: defer": _task("tasks:\n  default: {cmds: [{defer: show d1}, show x, exit 4, show y]}\n"),
    "task: two that are deferred": _task("tasks:\n  default: {cmds: [{defer: 'false'}, {defer: show d1}, {defer: show d2}, show x]}\n"),
    "just: an exported command": _just("set export\nv := `echo x`\na:\n  show $v\n"),
    "just: too few arguments": _just("a: b\n  show a\nb x:\n  show {{x}}\n", "a"),
    "just: a recipe that is there twice": _just("set allow-duplicate-recipes\na:\n  show a\na:\n  show mine\n", "a"),
    "task: a part that the environment decides": _task("tasks:\n  default: {cmds: ['show {{if .NO}}a{{else if .V}}b{{end}}']}\n"),
    "just: quotes that are not closed": _just("a:\n  show it's\n  show that's\n"),
    "just: a command as an argument": _just("a: (b `echo q`)\nb x:\n  show {{x}}\n"),
    "just: a dependency that is an alias": _just("alias z := a\na:\n  show a\nb: z\n  show b\n", "b"),
    "just: a module": _just("mod m\na: m::b\n  show a\n", "a", files={"m/mod.just": "b:\n  show b\n"}),
    "just: an empty line after the head": _just("b:\n  show b\na:\n\n  show x\n"),
    "just: a circle": _just("a: b\n  show a\nb: a\n  show b\n"),
    "just: an unknown function": _just("a:\n  show {{blake3('x')}}\n"),
    "just: an unknown setting": _just("set fancy\na:\n  show a\n"),
    "just: an unknown attribute": _just("[fancy]\na:\n  show a\n"),
    "just: another shell": _just("set shell := ['pwsh', '-c']\na:\n  show a\n"),
    "just: a pattern": _just("x := if 'a' =~ 'a' { '1' } else { '2' }\na:\n  show {{x}}\n"),
    "just: a file of variables that just fills in": _just("set dotenv-load\na:\n  show $E\n", files={".env": "E=${HOME}\n"}),
    "task: a file of variables that go-task fills in": _task("dotenv: [o.env]\ntasks:\n  default: show $A\n", files={"o.env": "A=${HOME}x\n"}),
    "task: lines like YAML in a file of variables": _task("dotenv: [o.env]\ntasks:\n  default: show $A\n", files={"o.env": "A: x\n"}),
    "task: values in several lines": _task("dotenv: [o.env]\ntasks:\n  default: show $A\n", files={"o.env": "A='x\ny'\n"}),
    "task: which part holds": _task("tasks:\n  default: {cmds: ['show {{if .VERB}}-v{{else}}q{{end}} x']}\n"),
    "task: a task that is not there": _task("tasks:\n  default: {cmds: [{task: nope}]}\n"),
    "task: an unknown function": _task("tasks:\n  default: {cmds: ['show {{fromJson \"{}\"}}']}\n"),
    "task: a checksum": _task("tasks:\n  default: {sources: [a], cmds: ['show {{.CHECKSUM}}']}\n"),
    "task: loops over files": _task("tasks:\n  default: {sources: [a], cmds: [{for: sources, cmd: 'show {{.ITEM}}'}]}\n"),
    "task: a task that is deferred": _task("tasks:\n  default: {cmds: [{defer: {task: b}}, show a]}\n  b: show b\n"),
    "task: something deferred later": _task("tasks:\n  default: {cmds: [show a, {defer: show d}, show b]}\n"),
    "task: quotes that are not closed": _task("tasks:\n  default: {cmds: ['show it''s', show that's]}\n"),
    "task: an unknown key": _task("tasks:\n  default: {cmds: [show a], fancy: 1}\n"),
    "task: a condition of several commands": _task("tasks:\n  default: {status: ['false; true'], cmds: [show a]}\n"),
    "task: a missing file that is included": _task("includes: {a: ./no.yml}\ntasks:\n  default: {cmds: [{task: a:b}]}\n"),
    "task: another version": Case("task", 'version: "2"\ntasks:\n  default: show a\n'),
}  # fmt: skip
