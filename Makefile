# The commands of the project. `make` alone lists them.

GO       ?= go
# The newest release with the commit that is built: 0.1.0+1a2b3c4d, 0.1.0+1a2b3c4d.dirty; in an unpacked archive 0.1.0 alone.
COMMIT   := $(shell git describe --always --exclude '*' --dirty=.dirty 2>/dev/null)
VERSION  ?= $(shell sed -n 's/^## //p' CHANGELOG.md | head -n 1)$(COMMIT:%=+%)
LDFLAGS  := -s -w -X github.com/braggdev/bragg/internal/console.Release=$(VERSION) -X main.version=$(VERSION)
BUILD    := CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)"
ARCH     := $(shell $(GO) env GOOS)-$(shell $(GO) env GOARCH)
# Debian packages with the real parts that tests use.
PACKAGES := fio chromium fonts-dejavu-core xfsprogs e2fsprogs util-linux tmux openssh-server openssh-client \
	qemu-system-x86 qemu-utils libvirt-daemon-system libvirt-clients dnsmasq-base iproute2 iptables ipmitool openipmi busybox-static strace \
	ansible-core sshpass python3 python3-venv \
	etcd-server containerd runc containernetworking-plugins \
	postgresql mariadb-server redis-server redis-tools sysbench libxml2-utils iperf3 bash-completion prometheus-node-exporter prometheus prometheus-pushgateway victoria-metrics mmdebstrap fdisk

# Packages whose state is shared by goroutines are tested under the race detector.
RACE     := evaluate executor fleet control agent/... clock guest lab lab/prism load/... fio/iojob/... fio/fioreport fio/iohosts metric playbook result session/... sshlink/... target/... report/live

# Packages whose tests judge how fast loads are, unless they mostly wait.
MEASURED := $(addprefix ./internal/,cli fio/command fio/iojob/... load/...)

# Packages whose tests mostly wait, for guests that boot, and for hosts and servers that answer; the longest first.
WAITING  := $(addprefix ./internal/,target/libvirt lab/... session agent/... load/sysbench load/hammerdb load/pgbench load/redis load/iperf3 load/blockdev \
	image target/bmc fio/iohosts target/ssh playbook testreq/... lease target/... guest)

.PHONY: help demo lab lab-down build test test-fast test-changed test-profile race deps deps-nutanix deps-kube kube-program check house cross format dist readme-picture corpus bench-fio bench-io bench-common bench-stream bench-start bench-report bench-agents soak clean

help:
	@echo "make demo          build, then a database, a noisy neighbor and a killed VM on this machine, in about a minute"
	@echo "make lab           two libvirt hosts on this machine with BMCs, to try real VMs (needs root; docs/guides/lab.md)"
	@echo "make lab-down      remove that lab"
	@echo "make test          every test that can run here; names what is missing; takes long, and says how long"
	@echo "make test-fast     the tests without real parts, in a few minutes"
	@echo "make test-changed  the tests of what depends on the changes since this branch left main; LIST=1 only lists them"
	@echo "make test-profile PKG=./internal/lease/...   what tests cost: CPU, waiting, processes, bytes, linking"
	@echo "make build         static binaries in bin/"
	@echo "make bin/bragg-linux-arm64   for bragg io --hosts where hosts are of that platform"
	@echo "make deps          install the Debian packages that tests use (needs root)"
	@echo "make deps-nutanix  install Nutanix's SDKs for tests; a part of make deps"
	@echo "make deps-kube     build Kubernetes for tests, once; takes about ten minutes"
	@echo "make check         format, vet, staticcheck, golangci-lint"
	@echo "make house         sizes of packages, types and functions, and duplicated lines; nothing of it is a gate"
	@echo "make cross         build and vet the agent for Windows and macOS"
	@echo "make corpus        load, plan and rehearse every public X-Ray scenario beside the checkout"
	@echo "make dist          an archive that needs neither Go nor make nor network, with licences and checksums"
	@echo "make readme-picture   the picture of a report in README.md, from a real run"
	@echo "make bench-fio     the native engine against fio on a loop device (needs root)"
	@echo "make bench-io      bragg io against fio, or against another build with PEER=path: speed, CPU per operation, latency"
	@echo "make bench-common  one job in fio, sysbench and on the native engine, in turns"
	@echo "make bench-stream  bandwidth of memory against the same loops in C (needs gcc)"
	@echo "make bench-start   from 'bragg run' to the first I/O"
	@echo "make bench-report  seal and report 100 VMs over ten hours"
	@echo "make bench-agents  one controller with a thousand simulated agents for ten minutes"
	@echo "make soak          what takes too long for make test, in parts of at most 40 minutes; make soak-agent runs one (docs/soak.md)"

build:
	@mkdir -p bin
	$(BUILD) -o bin/bragg ./cmd/bragg
	$(BUILD) -o bin/bragg-agent ./cmd/bragg-agent
	$(BUILD) -o bin/bragg-lab ./cmd/bragg-lab

# bragg for hosts of another platform than this one: make bin/bragg-linux-arm64
bin/bragg-linux-%:
	@mkdir -p bin
	GOOS=linux GOARCH=$* $(BUILD) -o $@ ./cmd/bragg

# and its agent: make bin/bragg-agent-linux-arm64
bin/bragg-agent-linux-%:
	@mkdir -p bin
	GOOS=linux GOARCH=$* $(BUILD) -o $@ ./cmd/bragg-agent

demo: build
	bin/bragg demo

# LAB holds more flags: make lab LAB="--hosts 3 --bmc ipmi"
lab: build
	bin/bragg-lab up $(LAB)

lab-down: build
	bin/bragg-lab down

# First, one package at a time, those whose loads are measured: they must not compete with other tests for two cores. Then all others,
# two at a time, the longest first. make check vets.
test:
	$(GO) build ./...
	@waiting="$$($(GO) list $(WAITING))"; measured="$$($(GO) list $(MEASURED) | grep -vxF "$$waiting")"; \
	$(GO) run ./internal/testreq/summary -times build/test-times.json \
		-- $(GO) test -vet=off -timeout 20m -p 1 $$measured \
		-- $(GO) test -vet=off -timeout 20m -p 2 $$waiting $$($(GO) list ./... | grep -vxF "$$waiting" | grep -vxF "$$measured")

test-fast:
	$(GO) test -short ./...

# The tests of what depends on the changes since this branch left main, or since BASE; uncommitted changes count. In the order of make test.
# LIST=1 only lists the packages. PROGRAMS=1 adds those whose tests build a program that contains the changes: rehearsals of platforms.
test-changed:
	@changed="$$($(GO) run ./internal/testreq/changed $(if $(BASE),-base $(BASE)) $(if $(PROGRAMS),-programs))" || exit $$?; \
	[ -n "$$changed" ] || exit 0; \
	$(if $(LIST),echo "$$changed"; exit 0;) \
	waiting="$$($(GO) list $(WAITING) | grep -xF "$$changed")"; \
	measured="$$($(GO) list $(MEASURED) | grep -vxF "$$waiting" | grep -xF "$$changed")"; \
	others="$$waiting $$(echo "$$changed" | grep -vxF "$$waiting" | grep -vxF "$$measured")"; \
	set --; \
	[ -z "$$measured" ] || set -- -- $(GO) test -vet=off -timeout 20m -p 1 $$measured; \
	[ -z "$${others# }" ] || set -- "$$@" -- $(GO) test -vet=off -timeout 20m -p 2 $$others; \
	$(GO) run ./internal/testreq/summary "$$@"

# What tests cost, package by package: make test-profile PKG=./internal/lease/... RUN='^TestKeeper' ROWS=50
test-profile:
	@$(GO) run ./internal/testreq/profile -rows $(or $(ROWS),20) $(if $(RUN),-run '$(RUN)') $(or $(PKG),$(error PKG is not set: make test-profile PKG=./internal/lease/...))

# Left out is what takes long under the detector and has no goroutines that meet: contents, shapes beside fio's, programs that are started;
# and what runs on the simulator of vCenter, which has races of its own.
race:
	$(GO) test -race -short -vet=off -timeout 20m -skip '^Test(Compress|Content|Duplicates|OperationsAreShaped|EveryFailpoint|SourceOfTheVCenter)' \
		$$($(GO) list $(addprefix ./internal/,$(RACE)) | grep -v '/target/vsphere$$\|/target/vsphere/faults$$\|/target/vsphere/rehearsal$$')

deps:
	tools/apt-update.sh
	@mkdir -p /etc/postgresql-common/createcluster.d # tests make servers of their own; the package must not start one
	@echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.d/bragg-tests.conf
	@dpkg -s redis-server >/dev/null 2>&1 || systemctl mask --quiet redis-server.service 2>/dev/null || true # the same for a Redis that was not there
	@for s in etcd containerd; do [ -e /usr/bin/$$s ] || systemctl mask --quiet $$s.service 2>/dev/null || true; done
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends $(PACKAGES)
	@$(MAKE) --no-print-directory build/kernel
	@$(MAKE) --no-print-directory deps-nutanix

# Kubernetes for tests, from a module of its own: control plane, kubelet, kubectl and helpers of tests in one program, and what the CSI
# project has for snapshots. The first build takes about ten minutes of two processors. It is kept outside the tree, by version and by
# the sum of its sources, so that all checkouts of a machine share it and a change builds another one. BRAGG_KUBE_DIR names another folder.
KUBE_VERSION := v1.34.0
KUBE_SOURCES  = $(sort $(wildcard tools/kube/*.go)) tools/kube/go.mod tools/kube/go.sum
KUBE_FOLDER   = $(or $(BRAGG_KUBE_DIR),/var/cache/bragg/kube)/$(KUBE_VERSION)-$(shell cat $(KUBE_SOURCES) | sha256sum | cut -c 1-12)
KUBE_NUMBERS  = -X k8s.io/component-base/version.gitVersion=$(KUBE_VERSION) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=34
KUBE_CSI      = github.com/kubernetes-csi/external-snapshotter
deps-kube:
	@[ -x $(KUBE_FOLDER)/kube ] || { set -e; part=$(KUBE_FOLDER).$$$$; mkdir -p $$part/crds; cd tools/kube; \
		CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w $(KUBE_NUMBERS)" -o $$part/ . $(KUBE_CSI)/v8/cmd/snapshot-controller $(KUBE_CSI)/v8/cmd/csi-snapshotter; \
		cp $$($(GO) list -m -f '{{.Dir}}' $(KUBE_CSI)/client/v8)/config/crd/snapshot.storage.k8s.io_*.yaml $$part/crds/; \
		rm -rf $(KUBE_FOLDER); mv $$part $(KUBE_FOLDER); }

# Where that program is.
kube-program:
	@echo $(KUBE_FOLDER)/kube

# Nutanix's SDKs, which the emulator of Prism is held against.
NTNX_VENV ?= $(or $(BRAGG_NTNX_VENV),/var/cache/bragg/ntnx)
NTNX_SDKS := ntnx-vmm-py-client==4.3.2 ntnx-clustermgmt-py-client==4.3.2 ntnx-prism-py-client==4.4.2 ntnx-dataprotection-py-client==4.4.2
deps-nutanix:
	@have=$$($(NTNX_VENV)/bin/pip freeze 2>/dev/null | tr _ -); for sdk in $(NTNX_SDKS); do case "$$have" in *$$sdk*) ;; *) want=1 ;; esac; done; \
	if [ -n "$$want" ]; then python3 -m venv $(NTNX_VENV) && $(NTNX_VENV)/bin/pip install -q $(NTNX_SDKS); fi

# A kernel for the guests of tests. It is fetched and not installed; BRAGG_TEST_KERNEL names another one.
build/kernel:
	@rm -rf $@.part && mkdir -p $@.part
	cd $@.part && apt-get -q -o APT::Sandbox::User= download \
		$$(apt-cache depends linux-image-cloud-$$(dpkg --print-architecture) | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
	@mv $@.part $@

# A distribution for guests of the soak (needs root and the network); BRAGG_TEST_CLOUD_IMAGE names another one.
build/cloud.qcow2:
	$(GO) run ./cmd/bragg image build --with postgresql,python3,sysbench,xfsprogs,sudo,python3-apt,python3-psycopg2,prometheus-node-exporter,prometheus-postgres-exporter -o $@

build/bragg.ova: build
	bin/bragg image ova -o $@

format:
	gofmt -w $$(git ls-files '*.go')

check:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) mod verify >/dev/null
	$(GO) tool -modfile=tools/go.mod staticcheck ./...
	$(GO) tool -modfile=tools/go.mod golangci-lint run --allow-serial-runners ./...

# ROWS is the length of its lists: make house ROWS=100
house:
	@$(GO) run ./internal/archtest/house -rows $(or $(ROWS),12)

# What cannot be run here is at least compiled and looked at.
cross:
	@for os in windows darwin; do for arch in amd64 arm64; do \
		echo "agent for $$os/$$arch"; \
		GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 $(GO) vet ./cmd/bragg-agent ./internal/agent ./internal/agent/wire ./internal/agent/client ./internal/fio/fiojob ./internal/load/... || exit 1; \
		GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o /dev/null ./cmd/bragg-agent || exit 1; \
	done; done

# An archive with programs, documentation, scenarios and the licences of what is linked. Inside and beside it are checksums.
DIST  ?= dist
STAGE  = $(DIST)/bragg-$(VERSION)
dist:
	@rm -rf $(STAGE) && mkdir -p $(STAGE)/bin $(STAGE)/scenarios
	$(BUILD) -o $(STAGE)/bin/bragg ./cmd/bragg
	$(BUILD) -o $(STAGE)/bin/bragg-agent ./cmd/bragg-agent
	$(BUILD) -o $(STAGE)/bin/bragg-lab ./cmd/bragg-lab
	cp README.md CHANGELOG.md CONTRIBUTING.md LICENSE $(STAGE)/
	cp -r docs $(STAGE)/
	cp -r scenarios/*/ $(STAGE)/scenarios/
	GO="$(GO)" tools/licences.sh $(STAGE)/licences
	cd $(STAGE) && find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs -d '\n' sha256sum > SHA256SUMS
	tar -C $(DIST) --sort=name --owner=0 --group=0 --numeric-owner -czf $(STAGE)-$(ARCH).tar.gz bragg-$(VERSION)
	@rm -r $(STAGE)
	cd $(DIST) && sha256sum bragg-$(VERSION)-$(ARCH).tar.gz > bragg-$(VERSION)-$(ARCH).tar.gz.sha256
	@ls -l $(STAGE)-$(ARCH).tar.gz

# The picture of a report in README.md: of a real run of the demo, taken by Chromium.
readme-picture: build
	tools/readme-picture.sh bin/bragg docs/report.png

corpus: build
	BRAGG_CORPUS=all $(GO) test -count=1 -timeout 80m -v -run Corpus ./internal/cli

bench-start: build
	BRAGG_BINARY=$(CURDIR)/bin/bragg $(GO) test ./internal/cli -run '^$$' -bench FirstIO -benchtime 10x

bench-fio:
	$(GO) run ./internal/load/ioengine/benchfio --rounds 5 --seconds 5

bench-io: build
	$(GO) run ./internal/fio/iojob/benchio --rounds 5 --seconds 2 $(if $(PEER),--peer $(PEER))

bench-common:
	$(GO) run ./internal/load/sysbench/benchcommon

bench-stream:
	$(GO) run ./internal/load/stream/benchstream

# BRAGG_BENCH_VMS and BRAGG_BENCH_DURATION make it smaller.
bench-report:
	$(GO) test ./internal/report -run '^$$' -bench '^BenchmarkReport$$' -benchtime 1x -timeout 60m

# All agents are one other process of this machine; BRAGG_BENCH_AGENTS and BRAGG_BENCH_AGENTS_FOR make it smaller, BRAGG_BENCH_AGENTS_EVERY
# is the time between their intervals, and BRAGG_BENCH_AGENTS_STORE the URL of an empty VictoriaMetrics or Prometheus.
bench-agents:
	BRAGG_BENCH_AGENTS=$(or $(BRAGG_BENCH_AGENTS),1000) BRAGG_BENCH_AGENTS_FOR=$(or $(BRAGG_BENCH_AGENTS_FOR),10m) \
		$(GO) test ./internal/session -run '^TestManyAgents$$' -count=1 -v -timeout 30m

# Parts of the soak, each of at most SOAK_LIMIT; docs/soak.md says what they prove, and has their last results, which the parts write there
# themselves. Those of SOAK_OWN need programs that users install.
SOAK_LIMIT := 40m
SOAK_PARTS := agent outage killed killed-hosts killed-lab races rehearsals-lab rehearsals-ssh rehearsals-kube contract-kube rehearsals-vsphere killed-vsphere rehearsals-nutanix killed-nutanix faults-kube faults-vsphere faults-nutanix ova distribution guests corpus-nutanix corpus-others statistics
SOAK_OWN := dlio vdbench hammerdb

# SOAK runs one part; TESTS is go test without results from the cache, one package at a time.
SOAK  = $(GO) run ./internal/testreq/soak -limit $(SOAK_LIMIT) -part
TESTS = $(GO) test -count=1 -v -p 1 -timeout 0

.PHONY: $(addprefix soak-,$(SOAK_PARTS) $(SOAK_OWN))

soak:
	@failed=; for part in $(SOAK_PARTS) $(if $(BRAGG_DLIO),dlio) $(if $(BRAGG_VDBENCH_HOME),vdbench) $(if $(HAMMERDB_HOME),hammerdb); do \
		$(MAKE) --no-print-directory soak-$$part || failed="$$failed $$part"; done; \
	[ -z "$$failed" ] || { echo "parts that did not pass:$$failed" >&2; exit 1; }

# A look at the agent's memory each second. make soak-agent BRAGG_SOAK=1h SOAK_LIMIT=70m takes longer.
soak-agent:
	$(SOAK) agent -- env BRAGG_SOAK=$(or $(BRAGG_SOAK),35m) $(TESTS) ./internal/agent -run '^TestSoak$$'

soak-outage:
	$(SOAK) outage -- env BRAGG_SOAK_OUTAGE=60s $(TESTS) ./internal/agent -run '^TestOutage$$' \
		-- env BRAGG_SOAK_OUTAGE=10m $(TESTS) ./internal/agent -run '^TestOutage$$'

soak-killed:
	$(SOAK) killed -- env BRAGG_SOAK_FAILPOINTS=1000 $(TESTS) ./internal/session -run '^TestDeathAtFailpoints$$'

soak-killed-hosts:
	$(SOAK) killed-hosts -- env BRAGG_SOAK_FAILPOINTS=1000 $(TESTS) ./internal/session -run '^TestDeathOnHosts$$'

soak-killed-lab:
	$(SOAK) killed-lab -- env BRAGG_SOAK_FAILPOINTS=1000 $(TESTS) ./internal/session -run '^TestDeathOnALab$$'

soak-races:
	$(SOAK) races -- env BRAGG_SOAK_RACES=1000 $(TESTS) ./internal/session -run '^TestTwoControllersRaceForHosts$$'

soak-rehearsals-lab:
	$(SOAK) rehearsals-lab -- env BRAGG_SOAK_REHEARSALS=1 $(TESTS) ./internal/lab/rehearsal -run '^TestRehearsalsOnGuests$$' -skip '/ (over|on libvirt over) ssh$$'

soak-rehearsals-ssh:
	$(SOAK) rehearsals-ssh -- env BRAGG_SOAK_REHEARSALS=1 $(TESTS) ./internal/lab/rehearsal -run '^TestRehearsalsOnGuests$$/ (over|on libvirt over) ssh$$'

soak-rehearsals-kube:
	$(SOAK) rehearsals-kube -- env BRAGG_SOAK_REHEARSALS=1 $(TESTS) ./internal/target/kube/rehearsal ./internal/target/kube/guests -skip '^TestContract$$'

soak-contract-kube:
	$(SOAK) contract-kube -- env BRAGG_SOAK_REHEARSALS=1 $(TESTS) ./internal/target/kube/rehearsal -run '^TestContract$$'

soak-rehearsals-vsphere:
	$(SOAK) rehearsals-vsphere -- env BRAGG_SOAK_REHEARSALS=1 $(TESTS) ./internal/target/vsphere/rehearsal -skip '^TestKilledAtFailpoints$$'

soak-killed-vsphere:
	$(SOAK) killed-vsphere -- env BRAGG_SOAK_REHEARSALS=1 $(TESTS) ./internal/target/vsphere/rehearsal -run '^TestKilledAtFailpoints$$'

soak-rehearsals-nutanix:
	$(SOAK) rehearsals-nutanix -- env BRAGG_SOAK_REHEARSALS=1 $(TESTS) ./internal/target/nutanix -run '^(TestRehearsals|TestLab)$$'

soak-killed-nutanix:
	$(SOAK) killed-nutanix -- env BRAGG_SOAK_FAILPOINTS=1000 $(TESTS) ./internal/target/nutanix/faults -run '^TestDeathAtFailpoints$$'

soak-faults-kube:
	$(SOAK) faults-kube -- env BRAGG_SOAK_FAULTS=1 $(TESTS) ./internal/target/kube/contract -run '^(TestFaults|TestFaultsKubeVirt|TestCallsOfManyVMs)$$'

soak-faults-vsphere:
	$(SOAK) faults-vsphere -- env BRAGG_SOAK_FAULTS=1 $(TESTS) ./internal/target/vsphere/faults -run '^TestFaults$$'

soak-faults-nutanix:
	$(SOAK) faults-nutanix -- env BRAGG_SOAK_FAULTS=1 $(TESTS) ./internal/target/nutanix -run '^(TestFaults|TestListOfFaults)$$'

# A distribution boots in guests, by cloud-init; building its image is not a part of the limit.
CLOUD_IMAGE := $(or $(BRAGG_TEST_CLOUD_IMAGE),build/cloud.qcow2)
OVA := $(or $(BRAGG_TEST_OVA),build/bragg.ova)
soak-ova: $(OVA)
	$(SOAK) ova -- env BRAGG_TEST_OVA=$(OVA) $(TESTS) ./internal/target/vsphere -run '^TestGuestOfOVA$$'

soak-distribution: $(CLOUD_IMAGE)
	$(SOAK) distribution -- env BRAGG_TEST_CLOUD_IMAGE=$(CLOUD_IMAGE) $(TESTS) ./internal/target/libvirt ./internal/lab/rehearsal -run '^(TestCloudImage|TestDistribution)$$'

soak-guests: $(CLOUD_IMAGE)
	$(SOAK) guests -- env BRAGG_TEST_CLOUD_IMAGE=$(CLOUD_IMAGE) $(TESTS) ./internal/lab/rehearsal -run '^(TestDatabaseOnGuests|TestFilesOnGuests|TestPlaybookOnGuests)$$'

soak-statistics:
	$(SOAK) statistics -- env BRAGG_SOAK_STATISTICS=1 $(TESTS) ./internal/stat ./internal/compare ./internal/steady ./internal/evaluate ./internal/knee \
		-run '^(TestBetweenCoversWhatCorrelates|TestBootstrapErrorOfAutoregression|TestStableHistories|TestInjectedChange|TestErrorRates|TestHeadlineErrorRates|TestCostErrorRates|TestGateErrorRate|TestTrendErrorRates|TestLabelledSeries|TestFewValues|TestNoisyKnee|TestRollupsChangeNothing)$$'

soak-corpus-nutanix: build
	$(SOAK) corpus-nutanix -- env BRAGG_CORPUS=all $(TESTS) ./internal/cli -run '^TestCorpusRehearses$$/^nutanix$$'

soak-corpus-others: build
	$(SOAK) corpus-others -- env BRAGG_CORPUS=all $(TESTS) ./internal/cli -run '^TestCorpusRehearses$$' -skip '^TestCorpusRehearses$$/^nutanix$$'

soak-dlio:
	$(SOAK) dlio -- $(TESTS) ./internal/load/mlperf -run '^TestAgreesWithDLIO$$'

soak-vdbench:
	$(SOAK) vdbench -- $(TESTS) ./internal/load/vdbench -run '^TestSoak'

soak-hammerdb:
	$(SOAK) hammerdb -- $(TESTS) ./internal/load/hammerdb -run '^Test(HammerDB|Generator|SoakQueries)$$'

clean:
	rm -rf bin build dist
