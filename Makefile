# Every target does its own set-up. As root on Debian with Go, git, gcc and make, nothing else is needed.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export GOTOOLCHAIN := local
lab := eval "$$(ci/lab/up)"

.PHONY: build test unit hostile e2e lint bench demo lab lab-down clean

build: ## the program, bin/rebuild-check
	go build -trimpath -o bin/rebuild-check ./cmd/rebuild-check

demo: build ## the main job on scenarios/day27-rebuild
	$(lab); ci/demo

test: lint unit e2e ## all tests, those on kind included

unit: ## tests without a cluster: with the race detector, and without it where memory counts
	go test -race -short -timeout 20m ./...
	go test -short ./verifier/render
	go test ./fixtures/layouts

hostile: ## the whole table of hostile sizes, some minutes long
	go test -timeout 30m -run Hostile ./verifier/render

e2e: ## tests on real kind clusters
	$(lab); go test -tags e2e -count=1 -parallel 2 -timeout 40m ./scenarios

lint: ## gofmt, go vet and staticcheck
	test -z "$$(gofmt -l cmd verifier scenarios fixtures ci | tee /dev/stderr)"
	go vet ./... && go vet -tags e2e ./scenarios
	go build -C ci/tools -o "$(CURDIR)/bin/staticcheck" honnef.co/go/tools/cmd/staticcheck
	bin/staticcheck ./... && bin/staticcheck -tags e2e ./scenarios

bench: build ## the whole run against a kubectl script; render and source against their peers, each in one run; closure
	ci/bench-source
	ci/bench-render
	ci/bench-chart
	ci/bench-closure
	$(lab); ci/bench

lab: ## engine, node image, registry and fixture images
	ci/lab/up

lab-down: ## removes the registry; the engine stays
	ci/lab/down

clean:
	rm -rf bin rebuild-check-evidence
