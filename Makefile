# Everything a person or CI does with this repository. CI calls only these
# targets, so a laptop and CI agree. "make test" needs Go, make and git; "make test-all"
# also needs root and Debian packages, which "make packages" installs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.version=$(VERSION)

# The agent works on files and processes as only Linux has them.
PROGRAMS := $(if $(filter Darwin,$(shell uname -s)),./cmd/lockstep,./cmd/...)

# Everything is compiled in the same way, apart from the race detector's build: the tests, the
# programs that they start, the linters' view of them and the images share each compiled package.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)

LAB_CONTROL_PLANE := etcd kube-apiserver kube-controller-manager

# What "make lab" and "make test-all" start beside the control plane.
LAB_WITH ?= kwok,argo-rollouts

# The Kubernetes release of the tests' shared control plane: 1.36 or 1.34.
KUBERNETES ?= 1.36

# What "make bench" measures: every command under bench/.
BENCH ?= $(notdir $(patsubst %/,%,$(dir $(wildcard bench/*/main.go))))

# The packages and further flags of the tests.
PKG ?= ./...
TESTFLAGS ?=

# Directories of test/ whose tests all need a later tier: "make test" doesn't link them.
LATER := apps|ask|charts|doctor|images|install|node|notices|oldest|reload|safe|ui

# Directories of test/ whose tests only run built programs, or one goroutine at a time in virtual time: the race
# detector would see nothing. All other packages run with it in "make test-all".
APART := apps|charts|docs|histories|images|install|monitoring|node|oldest

# Most tests wait for other programs most of the time, so more of them run side by side
# than there are cores. The linters vet the code, so the tests don't.
CORES := $(shell getconf _NPROCESSORS_ONLN)
SIDE_BY_SIDE := -timeout 30m -p $(shell expr $(CORES) + 1) -parallel $(shell expr $(CORES) '*' 2)
# A shuffled run is never taken from Go's test cache. A laptop runs only what changed, and CI everything in any order.
GOTEST := go test -json -vet=off $(if $(CI),-shuffle=on) $(SIDE_BY_SIDE)
SUMMARY := bin/summary$(if $(CI), -strict)

# The race detector needs a C compiler and twice the time. What the tests themselves compile
# stays without both.
RACE_TEST := CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GOTEST) -race -exec "env CGO_ENABLED=0"

LINT := go tool -modfile=go.tools.mod golangci-lint

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build and run

.PHONY: build
build: ## Build the product into bin/, static: the programs run in an empty image
	go build -ldflags '-s -w $(LDFLAGS)' -o bin/ $(PROGRAMS)

# What makes one build the same as the next: the images have the time of the commit.
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
OUT ?= dist/images
RELEASE = bin/release $(1) --version='$(VERSION)' --revision='$(REVISION)' --created='$(SOURCE_DATE_EPOCH)' --out='$(OUT)' --image='$(IMAGE)'

.PHONY: images
images: bin/release ## Build the container images for amd64 and arm64 into dist/images, an OCI layout
	@$(call RELEASE,images)

.PHONY: push
push: bin/release ## Build and push all images (the first time about 10 minutes); IMAGE=registry.example/team/lockstep says where
	@$(call RELEASE,push)

# A release is made from a tag. Who gives VERSION makes one of what is there.
BUNDLE_VERSION = $(if $(filter file,$(origin VERSION)),,--version='$(VERSION)')
BUNDLE_OUT = $(if $(filter file,$(origin OUT)),,--out='$(OUT)')

.PHONY: release
release: bin/release bin/lab ## Build all files of a release into dist/VERSION: programs, images, charts, notes, checksums
	@helm=$$(bin/lab build helm); bin/release bundle $(BUNDLE_VERSION) $(BUNDLE_OUT) --helm="$$helm" --revision='$(REVISION)' --created='$(SOURCE_DATE_EPOCH)'

.PHONY: bin/release
bin/release:
	@go build -ldflags '-s -w' -o bin/release ./release

# On a control plane of its own the first chapter needs programs of the lab; the reader's
# cluster needs none, and the programs of the last chapters are built when they come.
.PHONY: demo
demo: bin/lab ## Play the story on a real control plane; CLUSTER=1 on your own cluster, after asking; KEEP=1 leaves it up; CHAPTERS=3 plays three
	@[[ -n '$(filter-out 0,$(CLUSTER))' ]] || bin/lab demo
	@[[ -e bin/demo ]] || echo "building Lockstep and the demo, the first time takes about 2 minutes"
	@go build -ldflags '$(LDFLAGS)' -o bin/demo ./test/demo
	@CLUSTER='$(CLUSTER)' YES='$(YES)' KEEP='$(KEEP)' CHAPTERS='$(CHAPTERS)' bin/demo

.PHONY: lab
lab: bin/lab ## Start a control plane and leave it up; it prints the command that ends just this one
	@bin/lab up --with $(LAB_WITH)

.PHONY: lab-down
lab-down: bin/lab ## End every control plane that "make lab" or "make demo KEEP=1" left up; bin/lab down KUBECONFIG ends one
	@bin/lab down

# Always asked for: go build finds by itself whether there is anything to do.
.PHONY: bin/lab
bin/lab:
	@[[ -e bin/lab ]] || echo "building the command that starts control planes" >&2
	@go build -ldflags '-s -w' -o bin/lab ./lab

##@ Check

# Each tier contains the one before it. The programs that a test asks for decide its tier, or
# it calls labtest.In: internal/labtest/tier.go.
.PHONY: test
test: $(if $(RACE),packages) bin/lab bin/summary ## Run the tests for every day, on a bare control plane; PKG=./internal/core/... for some, RACE=1 with the race detector
	@bin/lab build --tier test >/dev/null
	@$(call RUN,test,) $(if $(RACE),$(RACE_TEST),$(GOTEST)) $(TESTFLAGS) $(if $(filter ./...,$(PKG)),$$(go list ./... | grep -vE '/test/($(LATER))$$'),$(PKG)) | $(SUMMARY)

.PHONY: test-all
test-all: root packages bin/lab bin/summary ## Run what CI runs: adds a real node (root), Argo Rollouts, Helm, images, real applications, the pages; with the race detector
	@bin/lab build --tier all >/dev/null
	@$(call SPLIT,all)

.PHONY: test-release
test-release: root packages bin/lab bin/summary ## Run what a release has to pass: adds the oldest Kubernetes, GitOps, images for every platform, all breaks, fuzzing
	@bin/lab build --tier release >/dev/null
	@$(call SPLIT,release)
	@$(MAKE) fuzz breaks

# Said before half an hour of compiling, not after it.
.PHONY: root
root:
	@[ "$(PKG)" != ./... ] || [ "$$(id -u)" = 0 ] || { echo "the tests on a real node need root: run this as root, or choose packages: PKG=./internal/..." >&2; exit 1; }

# RUN starts a command on the control plane of a tier, SPLIT the tests of a tier: those of
# the product's own packages with the race detector, and those of built programs without.
RUN = LOCKSTEP_TIER=$(1) bin/lab exec --kubernetes $(KUBERNETES) $(if $(2),--with $(2)) -- env
SPLIT = $(call RUN,$(1),$(LAB_WITH)) bash -c 'failed=0; \
	apart=$$(go list $(PKG) | grep -E "/test/($(APART))$$" || true); \
	inside=$$(go list $(PKG) | grep -vE "/test/($(APART))$$" || true); \
	[[ -z $$apart ]] || $(GOTEST) $(TESTFLAGS) $$apart || failed=1; \
	[[ -z $$inside ]] || $(RACE_TEST) $(TESTFLAGS) $$inside || failed=1; \
	exit $$failed' | $(SUMMARY)

# The only place that installs anything: TIER=test needs nothing.
TIER ?= all
.PHONY: packages
packages: bin/lab ## Install the Debian packages that "make test-all" needs, and say why; without root or apt, print the command
	@bin/lab packages $(TIER)

.PHONY: bin/summary
bin/summary:
	@go build -ldflags '-s -w' -o bin/summary ./test/summary

.PHONY: deflake
deflake: ## Run the tests of "make test-all" ten times; PKG and TESTFLAGS choose which
	@$(MAKE) test-all TESTFLAGS='-count=10 $(TESTFLAGS)'

# How long each target runs, and with FUZZTOTAL all of them together, without the time to compile.
FUZZTIME ?= 10s
.PHONY: fuzz
fuzz: ## Fuzz every parser, each for FUZZTIME (10s), or all in FUZZTOTAL; FUZZ=FuzzParseImage for one
	@CGO_ENABLED=0 go build -o bin/fuzz ./test/fuzz
	@bin/fuzz --time '$(FUZZTIME)' $(if $(FUZZTOTAL),--total '$(FUZZTOTAL)') $(FUZZ)

.PHONY: bench
bench: bin/lab ## Measure on a real control plane; BENCH=reload for one, and then ARGS='--scenario burst' for its flags
	@[ -z "$(ARGS)" ] || [ "$(words $(BENCH))" = 1 ] || { echo "ARGS are the flags of one bench: give BENCH=reload as well" >&2; exit 2; }
	@bin/lab build $(LAB_CONTROL_PLANE) >/dev/null
	@for name in $(BENCH); do echo "bench $$name"; go run ./bench/$$name $(ARGS) || exit 1; done

.PHONY: breaks
breaks: packages bin/lab ## Bring known defects back and see a test fail; BREAKS=KR for some; SINCE=main for those of changed files, WITHIN=3m for a while; a second run continues the first, FRESH=1 begins anew
	@bin/lab build --tier all >/dev/null
	@CGO_ENABLED=0 go build -o bin/breaks ./test/breaks
	@bin/breaks $(if $(FRESH),--fresh) $(if $(SINCE),--since '$(SINCE)') $(if $(WITHIN),--within '$(WITHIN)') $(BREAKS)

# The number of survivors of each package is in test/mutation/survivors.txt.
.PHONY: mutation
mutation: ## Change the cores and the decisions one operator at a time, and count what no test notices; PKG=./internal/core/window for some, RECORD=1 keeps the numbers
	@go build -modfile=go.mutation.mod -o bin/gremlins github.com/go-gremlins/gremlins/cmd/gremlins
	@CGO_ENABLED=0 go build -o bin/mutation ./test/mutation
	@bin/mutation --gremlins bin/gremlins $(if $(RECORD),--record) $(filter-out ./...,$(PKG))

.PHONY: histories
histories: bin/lab ## Play 38 random histories to the built controller, and 350 to its decisions; HISTORY_SEED=7 or 1-5000 for others
	@bin/lab build --tier all >/dev/null
	@$(call RUN,all,$(LAB_WITH)) HISTORIES=all go test -count=1 -timeout 30m -parallel 4 ./test/histories

.PHONY: lint
lint: ## Run the linters; .golangci.yml says which and why
	$(LINT) run

.PHONY: fmt
fmt: ## Format the code
	$(LINT) fmt

.PHONY: docs
docs: ## Write the parts of docs/ that follow from the code
	go generate ./internal/docgen

.PHONY: verify
verify: verify-format verify-modules verify-generated verify-documents verify-product verify-darwin ## Check that everything derived is up to date

.PHONY: verify-format
verify-format:
	@files=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [[ -n "$$files" ]]; then echo "not formatted (make fmt):"; echo "$$files"; exit 1; fi

# Tidying the lab's modules takes minutes, because it looks at the tests of all
# their dependencies. That go.mod and go.sum describe every program completely is
# what matters, and is found by listing what the programs are made of.
.PHONY: verify-modules
verify-modules:
	@go mod tidy -diff
	@for mod in lab/*/go.mod; do \
		dir=$$(dirname "$$mod"); \
		(cd "$$dir" && GOFLAGS=-mod=readonly go list -deps tool >/dev/null) || { echo "$$mod is not consistent: run go mod tidy in $$dir"; exit 1; }; \
	done

.PHONY: verify-generated
verify-generated:
	@state() { git diff HEAD | git hash-object --stdin; git ls-files -o --exclude-standard | LC_ALL=C sort | xargs -r git hash-object; }; \
	before=$$(state); go generate ./...; \
	if [[ "$$before" != "$$(state)" ]]; then echo "generated files were out of date; commit these:"; git status --short; exit 1; fi

.PHONY: verify-documents
verify-documents:
	@check() { if [[ -f $$1 ]] && (( $$(wc -l < "$$1") >= $$2 )); then echo "$$1 has $$(wc -l < "$$1") lines; keep it under $$2"; exit 1; fi; }; \
	check README.md 200; check ARCHITECTURE.md 200; check CONTRIBUTING.md 150

# The lab's programs are run, never linked.
.PHONY: verify-product
verify-product:
	@linked=$$(go list -deps ./cmd/... | grep -E '^k8s\.io/kubernetes/|^go\.etcd\.io/|/internal/labtest|lockstep/release' || true); \
	if [[ -n "$$linked" ]]; then echo "the product links parts of the lab:"; echo "$$linked"; exit 1; fi

# The command line and the demo's lab are promised to compile on macOS; the agent is not.
# Without optimization, because nobody runs it: a release compiles it for good.
.PHONY: verify-darwin
verify-darwin: export GOOS := darwin
verify-darwin: export GOARCH := arm64
verify-darwin:
	@go vet -gcflags='all=-N -l' ./cmd/lockstep ./internal/cli/... ./internal/run/... ./internal/dropin/... ./lab/... ./internal/labtest/...
	@go build -gcflags='all=-N -l' -o /dev/null ./cmd/lockstep

##@ Clean

.PHONY: clean
clean: ## Remove what was built in this checkout; the lab's programs stay in the user's cache
	rm -rf bin dist
