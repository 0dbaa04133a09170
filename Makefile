# Everything sets itself up; `make` alone says what there is.
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
MINUTES ?= 5
# More workers than the two cores of a small machine: tests of daemons spend most of their time waiting.
WORKERS ?= 8
# Examples of each property that Hypothesis draws; `make slow` draws 400.
EXAMPLES ?= 10
# With the first, each of the hundreds of Pythons that the tests start would compile every module again; with the second,
# the demo would not find ragwatch in this folder.
unexport PYTHONDONTWRITEBYTECODE PYTHONSAFEPATH

.DEFAULT_GOAL := help
.PHONY: help setup run kit test measured-tests interpreters check check-deploy sbom lint fix slow soak rules bench bench-judge bench-peers month lock pin-images screenshots wheel docs

help:
	@echo "make run     the demo: a small real RAG service under ragwatch, no key"
	@echo "make test    everything that must hold: lint, types, layers, all tests, coverage"
	@echo "make interpreters  tests of the statistics and the embedded judge under the oldest and the newest version of Python here that is not the own one; part of make test"
	@echo "make check   the quick part of it, in a minute: lint, types, layers, unit, contract and house tests that cost little"
	@echo "make fix     format and repair what can be repaired"
	@echo "make slow    statistics and kill loops at high counts"
	@echo "make soak    the daemon under load for MINUTES=5 minutes: memory, files, lag, books; writes a plot"
	@echo "make rules   promtool and amtool on what we export, record and alert on"
	@echo "make check-deploy  what lies in deploy/ and grafana/, by other people's checkers; known vulnerabilities of what is locked"
	@echo "make sbom    what an installation is made of, as CycloneDX files in dist/"
	@echo "make screenshots  every page of the demo as a picture in dist/screenshots: light, dark, on a phone (two minutes)"
	@echo "make docs    the documentation as a site in dist/docs; broken links and anchors are errors, and so is prose that proselint reports"
	@echo "make kit     what is generated: rules, dashboards and pages of this repository; chart, manifests, mixin and manual page in dist/kit"
	@echo "make wheel   the wheels of ragwatch and of its model, and the sdist, in dist/"
	@echo "make bench   speed, beside the floor in the same run"
	@echo "make bench-judge  how far the embedded judges agree with people, set by set; ARGS=\"--limit 200\" for a first look"
	@echo "make bench-peers  cost of judges, tail, drift detectors and scrapes beside other tools, each in an environment of its own; writes docs/bench_peers.md"
	@echo "make month   a month of real answers with twelve breakages beside real Prometheus and Alertmanager, in 25 minutes; writes docs/month.md; ARGS=\"--hour 6\" on a busy machine"
	@echo "make lock    pin dependencies anew"
	@echo "make pin-images  write the digests of images into deploy/, where their registries can be reached"

setup: .venv/dev.stamp

.venv/run.stamp: requirements/demo.lock tools/setup.sh
	@PYTHON="$(PYTHON)" sh tools/setup.sh run

.venv/dev.stamp: requirements/dev.lock requirements/servers.lock tools/setup.sh
	@PYTHON="$(PYTHON)" sh tools/setup.sh dev

# Each an environment of its own in .venv/NAME: what it holds is nothing that ragwatch may import.
PEERS := ragas deepeval trulens phoenix nli
OWN_ENVIRONMENTS := build deploy docs tracers $(PEERS:%=peers-%)
LOCK.build := requirements/build.lock
LOCK.deploy := deploy/deploy.lock
LOCK.docs := docs/docs.lock
LOCK.tracers := tests/traced/tracers.lock
$(foreach peer,$(PEERS),$(eval LOCK.peers-$(peer) := bench/peers/$(peer).lock))
.SECONDEXPANSION:
$(OWN_ENVIRONMENTS:%=.venv/%.stamp): .venv/%.stamp: $$(LOCK.$$*) tools/setup.sh
	@PYTHON="$(PYTHON)" sh tools/setup.sh $* $(LOCK.$*)

run: .venv/run.stamp
	@$(BIN)/python -m ragwatch demo $(ARGS)

lint: .venv/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tools/mypy.ini --cache-dir .mypy_cache/scripts
	$(BIN)/lint-imports
	$(BIN)/codespell docs ragwatch README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md config.example.yaml

check: lint
	EXAMPLES=10 $(BIN)/python -m pytest -q -m "not slow and not uncounted and not costly and not servers" --workers $(WORKERS) tests/unit tests/contract tests/house ragwatch

interpreters: .venv/dev.stamp
	@$(BIN)/python tests/interpreters.py

# All at a time: the type checker uses one core, and tests of daemons wait.
test: .venv/dev.stamp
	@$(MAKE) --no-print-directory -j 3 lint interpreters measured-tests
	@$(BIN)/coverage combine -q
	$(BIN)/coverage report --fail-under=95
	$(BIN)/coverage report --include='ragwatch/statistics/*,ragwatch/model/*,ragwatch/redaction/*,$(OFFLINE)' --fail-under=100

# Arithmetic of the tools without a daemon.
OFFLINE = ragwatch/offline/question_kinds.py,ragwatch/offline/suggest.py,ragwatch/offline/diagnosis/chunks.py,ragwatch/offline/diagnosis/definition.py,ragwatch/offline/diagnosis/ranks.py,ragwatch/offline/diagnosis/report.py,ragwatch/offline/diagnosis/texts.py,ragwatch/offline/gate_line.py,ragwatch/offline/regression.py,ragwatch/offline/relevance_estimate.py,ragwatch/offline/power.py,ragwatch/offline/rollout_stages.py

measured-tests: .venv/dev.stamp
	@rm -f .coverage .coverage.*
	EXAMPLES=$(EXAMPLES) $(BIN)/coverage run -m pytest -m "not slow" --workers $(WORKERS)

.venv/oracles.stamp: .venv/dev.stamp tests/oracles.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r tests/oracles.lock
	@touch $@

slow: .venv/oracles.stamp .venv/tracers.stamp
	$(BIN)/python tests/interpreters.py --all
	$(BIN)/python -m pytest -m slow --workers 3
	EXAMPLES=400 $(BIN)/python -m pytest -m "not slow" --workers $(WORKERS) tests/unit tests/contract

soak: .venv/dev.stamp
	$(BIN)/python tools/soak.py $(MINUTES)

rules: .venv/dev.stamp
	promtool check rules --lint=all --lint-fatal deploy/prometheus/ragwatch-*.yaml
	promtool check config deploy/prometheus/prometheus.yaml
	amtool check-config deploy/alertmanager/alertmanager.yaml
	$(BIN)/python -m pytest tests/functional/test_prometheus.py tests/functional/test_oncall.py \
	  tests/functional/test_oncall_inhibition.py tests/functional/test_oncall_rules.py tests/functional/test_oncall_peace.py \
	  tests/unit/exporter tests/unit/rules \
	  tests/house/test_oncall.py tests/house/test_oncall_expressions.py \
	  tests/house/test_dashboards.py

check-deploy: .venv/dev.stamp .venv/deploy.stamp sbom kit
	.venv/deploy/bin/hadolint deploy/Dockerfile
	.venv/deploy/bin/check-jsonschema --builtin-schema vendor.compose-spec deploy/compose.yaml deploy/compose.secured.yaml deploy/compose.fleet.yaml
	.venv/deploy/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	.venv/deploy/bin/yamllint -s -d '{extends: relaxed, ignore: [deploy/helm/ragwatch/templates], rules: {line-length: disable}}' deploy grafana .github config.example.yaml
	.venv/deploy/bin/kubernetes-validate --strict -k 1.33 deploy/kubernetes/sidecar.yaml deploy/kubernetes/config.yaml deploy/kubernetes/secret.yaml \
	  $(addprefix deploy/kubernetes/fleet/,config.yaml broker.yaml deployment.yaml hpa.yaml pdb.yaml)
	.venv/deploy/bin/helm lint --strict dist/kit/helm/ragwatch -f deploy/helm/example-values.yaml
	.venv/deploy/bin/helm template example dist/kit/helm/ragwatch -f deploy/helm/example-values.yaml > dist/chart.yaml
	.venv/deploy/bin/helm template example dist/kit/helm/ragwatch -f deploy/helm/example-values.yaml \
	  --set podMonitor.enabled=true,prometheusRule.enabled=true > dist/chart-operator.yaml
	$(BIN)/python tools/crds.py dist/chart-operator.yaml $(filter-out %/sidecar-patch.yaml,$(wildcard dist/kit/kubernetes/*.yaml)) \
	  $(wildcard deploy/kubernetes/fleet/*.yaml) deploy/slo/pyrra.yaml
	.venv/deploy/bin/kubernetes-validate --strict -k 1.33 dist/chart.yaml
	$(BIN)/python tools/rendered.py < dist/chart.yaml
	@if command -v kubectl > /dev/null; then \
	  kubectl kustomize docs/examples/kustomize > dist/kustomized.yaml && $(BIN)/python tools/rendered.py < dist/kustomized.yaml; \
	else echo "not checked: docs/examples/kustomize needs kubectl"; fi
	sed 's#/opt/ragwatch/bin/ragwatch#/bin/true#' deploy/systemd/ragwatch.service > dist/ragwatch.service && systemd-analyze verify dist/ragwatch.service
	systemd-analyze security --offline=true --threshold=20 deploy/systemd/ragwatch.service
	$(BIN)/python tools/grafana_types.py
	$(BIN)/python tools/dashboard_linter.py grafana/*/*.json
	@sh tools/audit.sh .venv/deploy/bin/pip-audit requirements/run.lock requirements/local.lock

# What an installation is made of, as CycloneDX: one file for each set of locked packages.
sbom: .venv/deploy.stamp
	@mkdir -p dist
	@sed "s/^dynamic = .*/version = \"$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' ragwatch/__init__.py)\"/" pyproject.toml > dist/pyproject.toml
	.venv/deploy/bin/cyclonedx-py requirements --output-reproducible --validate --pyproject dist/pyproject.toml \
	  --mc-type application -o dist/ragwatch.cdx.json requirements/run.lock
	.venv/deploy/bin/cyclonedx-py requirements --output-reproducible --validate --pyproject dist/pyproject.toml \
	  --mc-type application -o dist/ragwatch-local.cdx.json requirements/local.lock

bench: .venv/dev.stamp
	@failed=; for each in $(filter-out bench/judge_accuracy.py,$(wildcard bench/*.py)); do \
	  echo "== $$each"; $(BIN)/python $$each || failed="$$failed $$each"; \
	done; test -z "$$failed" || { echo "failed, or missed their bars:$$failed"; exit 1; }

bench-judge: .venv/dev.stamp
	@$(BIN)/python bench/judge_accuracy.py --svg docs/judge_accuracy.svg $(ARGS)

bench-peers: .venv/dev.stamp $(PEERS:%=.venv/peers-%.stamp)
	@$(BIN)/python bench/peers/run.py $(ARGS)

month: .venv/dev.stamp
	@$(BIN)/python bench/month/run.py $(ARGS)

fix: .venv/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

kit: .venv/dev.stamp
	@$(BIN)/python tools/kit.py
	@$(BIN)/python tools/readme.py

pin-images: .venv/dev.stamp
	@$(BIN)/python tools/pin_images.py $(ARGS)

# Needs uv, which the lock itself does not: pip installs what is locked.
COMPILE := uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url
EXTRAS := --extra encryption --extra grpc --extra kafka --extra mcp --extra nats --extra postgres --extra redis --extra sqs --extra zstd

lock:
	$(COMPILE) $(EXTRAS) pyproject.toml tools/build.in -o requirements/run.lock
	$(COMPILE) --constraint requirements/run.lock --group demo -o requirements/demo.lock
	$(COMPILE) --constraint requirements/run.lock tools/build.in -o requirements/build.lock
	$(COMPILE) --constraint requirements/run.lock --group dev pyproject.toml tools/build.in -o requirements/dev.lock
	$(COMPILE) --constraint requirements/dev.lock $(EXTRAS) --extra local --no-emit-package ragwatch-reader \
	  pyproject.toml tools/build.in -o requirements/local.lock
	$(COMPILE) --constraint requirements/dev.lock --group interpreters pyproject.toml -o requirements/interpreters.lock
	$(COMPILE) --constraint requirements/dev.lock --group oracles -o tests/oracles.lock
	$(foreach name,deploy docs tracers peers-nli,$(COMPILE) --constraint requirements/dev.lock --group $(name) -o $(LOCK.$(name)) &&) true
	$(foreach peer,$(filter-out nli,$(PEERS)),$(COMPILE) --group peers-$(peer) -o $(LOCK.peers-$(peer)) &&) true
	$(COMPILE) --no-deps --group servers -o requirements/servers.lock

docs: .venv/docs.stamp
	@rm -rf dist/docs dist/prose
	.venv/docs/bin/python tools/prose.py dist/prose
	.venv/docs/bin/sphinx-build -q -W --keep-going -b html -c docs . dist/docs
	@echo "dist/docs/index.html"

screenshots: .venv/dev.stamp
	@$(BIN)/python tools/screenshots.py dist/screenshots

wheel: .venv/build.stamp
	@.venv/build/bin/python -m hatchling build -d dist
	@cd reader && ../.venv/build/bin/python -m hatchling build -t wheel -d ../dist
