# Everything a person or CI does with this repository. CI calls only these
# targets, so a laptop and CI agree. Needed: Go, make and git; for "make test" also
# root, because of the tests on a real node. SHORT=1 leaves those out.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.version=$(VERSION)

# The agent works on files and processes as only Linux has them.
PROGRAMS := $(if $(filter Darwin,$(shell uname -s)),./cmd/lockstep,./cmd/...)

# What the shared control plane of the tests has besides the bare minimum, and
# the programs which that takes, in the order of need.
LAB_WITH ?= kwok,argo-rollouts
LAB_CONTROL_PLANE := etcd kube-apiserver kube-controller-manager
LAB_TESTS := $(LAB_CONTROL_PLANE) kube-scheduler kwok argo-rollouts kubelet registry helm helm3 gitops-agent kubectl

# The release of the tests' shared control plane: 1.36 or 1.34.
KUBERNETES ?= 1.36

# What "make bench" measures: every command under bench/.
BENCH ?= $(notdir $(patsubst %/,%,$(dir $(wildcard bench/*/main.go))))

# Packages and further flags of "make test" and "make deflake". The packages that
# take longest come first, so that none is left alone at the end. SHORT=1 leaves out
# what needs root or programs that are not installed.
PKG ?= ./test/node ./internal/synccli ./...
TESTFLAGS ?=
ifneq ($(SHORT),)
override TESTFLAGS += -short
endif

# Most tests wait for other programs most of the time, so that more of them run
# side by side than there are cores.
CORES := $(shell getconf _NPROCESSORS_ONLN)
# A first run also compiles programs inside the tests.
SIDE_BY_SIDE := -timeout 30m -p $(shell expr $(CORES) + 1) -parallel $(shell expr $(CORES) '*' 2)

# The race detector takes a C compiler and twice the time: it is on in CI, and for who
# asks with RACE=1.
ifneq ($(filter true,$(CI))$(RACE),)
DETECTOR := -race
export CGO_ENABLED := 1
# Without this every program with the detector in it waits a second at its end, for
# races of threads that are gone by then.
export GORACE ?= atexit_sleep_ms=0
endif

LINT := go tool -modfile=go.tools.mod golangci-lint

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build and run

.PHONY: build
build: ## Build the product into bin/, static: the programs run in an empty image
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w $(LDFLAGS)' -o bin/ $(PROGRAMS)

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
	@CGO_ENABLED=0 go build -o bin/release ./release

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

.PHONY: lab-programs
lab-programs: bin/lab ## Build what the tests' control plane needs (first time about 12 minutes)
	@bin/lab build $(LAB_TESTS) >/dev/null

.PHONY: lab-oldest
lab-oldest: bin/lab ## Build the control plane of the oldest supported Kubernetes, for test/oldest (first time about 7 minutes)
	@bin/lab build $(addsuffix @1.34,$(LAB_CONTROL_PLANE)) >/dev/null

# Always asked for: go build finds by itself whether there is anything to do.
.PHONY: bin/lab
bin/lab:
	@[[ -e bin/lab ]] || echo "building the command that starts control planes" >&2
	@CGO_ENABLED=0 go build -o bin/lab ./lab

##@ Check

.PHONY: test
test: compiler lab-programs $(if $(filter ./... ./test/... ./test/oldest,$(PKG)),lab-oldest) $(if $(filter ./...,$(PKG)),compiled) ## Run every test on one shared control plane; PKG=./internal/core/... for some, SHORT=1 without a real node, RACE=1 with the race detector
	@if [[ "$(KUBERNETES)" != 1.36 ]]; then echo "KUBERNETES=$(KUBERNETES): the tests on a real node stay on 1.36, the release of their kubelet"; fi
	@if [[ -n "$(SHORT)" ]]; then echo "SHORT=$(SHORT): left out are the tests on a real node, and those of applications that are not installed"; fi
	@bin/lab exec --kubernetes $(KUBERNETES) --with $(LAB_WITH) -- go test $(DETECTOR) -shuffle=on $(SIDE_BY_SIDE) $(TESTFLAGS) $(PKG)

# The packages of the programs that go into images, for the tests of the images and those on
# a real node: on a first run both would compile them at the same time, each for itself.
.PHONY: compiled
compiled:
	@for arch in amd64 arm64; do CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go list -export -deps -trimpath ./cmd/... >/dev/null || exit 1; done

.PHONY: deflake
deflake: ## Run the tests ten times; PKG and TESTFLAGS choose which
	@$(MAKE) test TESTFLAGS='-count=10 $(TESTFLAGS)'

.PHONY: bench
bench: bin/lab ## Measure on a real control plane; BENCH=reload for one, and then ARGS='--scenario burst' for its flags
	@[ -z "$(ARGS)" ] || [ "$(words $(BENCH))" = 1 ] || { echo "ARGS are the flags of one bench: give BENCH=reload as well" >&2; exit 2; }
	@bin/lab build $(LAB_CONTROL_PLANE) >/dev/null
	@for name in $(BENCH); do echo "bench $$name"; go run ./bench/$$name $(ARGS) || exit 1; done

.PHONY: breaks
breaks: lab-programs ## Bring each predecessor's defect back and see its test fail; BREAKS=KR for some
	@bin/lab exec --with $(LAB_WITH) -- go run ./test/breaks $(BREAKS)

.PHONY: histories
histories: lab-programs ## Play 26 random histories to the built controller, and 260 to its decisions; HISTORY_SEED=7 or 1-5000 for others
	@HISTORIES=all bin/lab exec --with $(LAB_WITH) -- go test -count=1 -timeout 30m -parallel 4 ./test/histories

.PHONY: compiler
compiler: # The C compiler of the race detector
	@if [[ -z "$(DETECTOR)" ]] || command -v "$$(go env CC)" >/dev/null; then exit 0; fi; \
	if [[ $$(id -u) == 0 ]] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq gcc libc6-dev >/dev/null; exit 0; fi; \
	echo "the race detector needs a C compiler: install gcc and libc6-dev (Debian) or gcc and glibc-devel (Fedora)" >&2; exit 1

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
verify-darwin: export CGO_ENABLED := 0
verify-darwin:
	@go vet -gcflags='all=-N -l' ./cmd/lockstep ./internal/cli/... ./lab/... ./internal/labtest/...
	@go build -gcflags='all=-N -l' -o /dev/null ./cmd/lockstep

##@ Clean

.PHONY: clean
clean: ## Remove what was built in this checkout; the lab's programs stay in the user's cache
	rm -rf bin dist
