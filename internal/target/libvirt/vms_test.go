package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// counting is the statistics of one running domain on a simulated host.
type counting struct {
	id, name string
	seconds  float64 // of CPU
	writes   int     // of 4096 bytes and 2 ms each
	rss      int     // KiB
	busy     bool    // libvirt leaves out what it would have to wait for
}

func (c counting) text() string {
	text := fmt.Sprintf("Domain: '%s'\n  cpu.time=%d\n", c.name, int64(c.seconds*1e9))
	text += fmt.Sprintf("  vcpu.current=2\n  vcpu.maximum=4\n  vcpu.0.delay=%d\n  vcpu.1.delay=0\n", int64(c.seconds*1e8))
	text += "  net.count=1\n  net.0.rx.bytes=1000\n  net.0.tx.bytes=1000\n  block.count=2\n  block.0.name=sda\n  block.1.name=sdb\n"
	if !c.busy {
		text += fmt.Sprintf("  balloon.rss=%d\n  block.0.wr.reqs=1\n  block.0.wr.bytes=512\n  block.0.wr.times=7\n", c.rss)
		text += fmt.Sprintf("  block.1.wr.reqs=%d\n  block.1.wr.bytes=%d\n  block.1.wr.times=%d\n", c.writes, 4096*c.writes, 2_000_000*c.writes)
	}
	return text + "\n"
}

// domainCounters are the domains of hosts, by the name of the host.
type domainCounters map[string][]counting

func (all domainCounters) answer(t *testing.T) func(h *simulatedHost, c virsh.Call) ([]byte, error, bool) {
	return func(h *simulatedHost, c virsh.Call) ([]byte, error, bool) {
		switch {
		case h.down:
			return nil, nil, false
		case c.Name() == "nodecpustats":
			return recorded(t, "nodecpustats.txt"), nil, true
		case c.Name() == "domstats": // the first reading is of the host alone
			return nil, nil, true
		case !strings.HasPrefix(c.Args[0], "list --uuid --name;"):
			return nil, nil, false
		}
		var list, stats strings.Builder
		for _, one := range all[h.name] {
			fmt.Fprintf(&list, "%s %s\n", one.id, one.name)
			stats.WriteString(one.text())
		}
		return []byte(list.String() + stats.String()), nil, true
	}
}

// vmMetrics returns samples as "A cpu_usage_ratio 0.5", those of one metric or all.
func vmMetrics(t *testing.T, l target.Target, metric target.VMMetric) []string {
	t.Helper()
	nodes, samples, err := l.(target.VMMeter).SampleVMs(t.Context(), testTag())
	if err != nil || len(nodes) == 0 {
		t.Fatal(nodes, err)
	}
	var list []string
	for _, s := range samples {
		if s.Metric == metric || metric == "" {
			list = append(list, fmt.Sprintf("%s %s %s %.6g", s.NodeID, s.VM, s.Metric, s.Value))
		}
	}
	return list
}

func wantMetrics(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", when, got, want)
	}
}

func TestVMAverages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 1, false)
		vm := s.hosts[0].add(t, testTag(), "A", true)
		a := counting{id: vm.ID, name: domain.Name(vm.ID, "A"), seconds: 10, writes: 1000, rss: 2048}
		s.instead = domainCounters{"host-1": {a}}.answer(t)
		l := s.open(t.TempDir())
		wantMetrics(t, "at the first reading", vmMetrics(t, l, ""), "host-1 A memory_resident_bytes 2.09715e+06")
		time.Sleep(2 * time.Second)
		a.seconds, a.writes = 13, 1100
		s.instead = domainCounters{"host-1": {a}}.answer(t)
		s.forgetCalls()
		wantMetrics(t, "two seconds later", vmMetrics(t, l, ""),
			"host-1 A cpu_usage_ratio 0.75", "host-1 A cpu_steal_ratio 0.075", "host-1 A memory_resident_bytes 2.09715e+06",
			"host-1 A disk_writes_per_second 50", "host-1 A disk_written_bytes_per_second 204800", "host-1 A disk_write_time_seconds 0.002",
			"host-1 A network_receive_bytes_per_second 0", "host-1 A network_transmit_bytes_per_second 0")
		if looks := s.count("", "list"); looks != 1 || s.count("", "domstats") != 0 || s.count("", "dumpxml") != 0 {
			t.Errorf("one sample made the calls %q", s.calls)
		}
		// Nothing was written: that takes no time, and no request has a mean.
		time.Sleep(time.Second)
		wantMetrics(t, "idle", vmMetrics(t, l, target.VMWriteTime))
		time.Sleep(time.Second)
		wantMetrics(t, "idle", vmMetrics(t, l, target.VMWrites), "host-1 A disk_writes_per_second 0")
		// While libvirt works on the domain, a missing value is not a zero, and the next average is of the whole time.
		time.Sleep(time.Second)
		a.busy, a.writes = true, 1200
		s.instead = domainCounters{"host-1": {a}}.answer(t)
		wantMetrics(t, "busy", vmMetrics(t, l, target.VMWrites))
		time.Sleep(3 * time.Second)
		a.busy = false
		s.instead = domainCounters{"host-1": {a}}.answer(t)
		wantMetrics(t, "no longer busy", vmMetrics(t, l, target.VMWrites), "host-1 A disk_writes_per_second 25")
	})
}

func TestVMCountersThatBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 2, false)
		vm := s.hosts[0].add(t, testTag(), "A", true)
		a := counting{id: vm.ID, name: domain.Name(vm.ID, "A"), seconds: 10, writes: 1000}
		l := s.open(t.TempDir())
		look := func(at string, change func()) []string {
			time.Sleep(time.Second)
			change()
			hosts := domainCounters{}
			for _, name := range strings.Fields(at) {
				hosts[name] = []counting{a}
			}
			s.set(func() { s.instead = hosts.answer(t) })
			return vmMetrics(t, l, target.VMWrites)
		}
		more := func() { a.writes += 70 }
		wantMetrics(t, "first", look("host-1", more))
		wantMetrics(t, "second", look("host-1", more), "host-1 A disk_writes_per_second 70")
		wantMetrics(t, "restarted", look("host-1", func() { a.writes, a.seconds = 5, 0.1 }))
		wantMetrics(t, "after that", look("host-1", more), "host-1 A disk_writes_per_second 70")
		// One counter alone would not show it.
		wantMetrics(t, "restarted, and wrote more than before", look("host-1", func() { a.writes, a.seconds = 90_000, 0.05 }))
		wantMetrics(t, "after that", look("host-1", more), "host-1 A disk_writes_per_second 70")
		wantMetrics(t, "between two nodes", look("host-1 host-2", more))
		s.hosts[1].domains[vm.ID] = s.hosts[0].domains[vm.ID]
		wantMetrics(t, "moved, with larger counters there", look("host-2", func() { a.writes, a.seconds = 1_000_000, 90 }))
		wantMetrics(t, "after that", look("host-2", more), "host-2 A disk_writes_per_second 70")
		wantMetrics(t, "off", look("", more))
		wantMetrics(t, "on again, with larger counters", look("host-2", func() { a.writes *= 2 }))
		wantMetrics(t, "after that", look("host-2", more), "host-2 A disk_writes_per_second 70")
		s.set(func() { s.hosts[1].down = true })
		wantMetrics(t, "its node is silent", look("host-2", more))
		s.set(func() { s.hosts[1].down = false })
		wantMetrics(t, "its node answers again, which a probe in the background finds out", look("host-2", more))
		wantMetrics(t, "its first reading", look("host-2", more))
		wantMetrics(t, "after that", look("host-2", more), "host-2 A disk_writes_per_second 70")
	})
}

// A call that takes long says little of when the host read its counters: the stretch is made longer until it does.
func TestVMAveragesOfSlowHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 1, false)
		vm := s.hosts[0].add(t, testTag(), "A", true)
		began := time.Now()
		s.instead = func(h *simulatedHost, c virsh.Call) ([]byte, error, bool) {
			if c.Name() != "list" || len(c.Args) != 1 {
				return domainCounters{}.answer(t)(h, c)
			}
			early := time.Duration(len(s.calls)%2) * 900 * time.Millisecond
			time.Sleep(early)
			a := counting{id: vm.ID, name: domain.Name(vm.ID, "A"), writes: int(100 * time.Since(began).Seconds())}
			time.Sleep(900*time.Millisecond - early)
			return domainCounters{"host-1": {a}}.answer(t)(h, c)
		}
		l := s.open(t.TempDir())
		_ = vmMetrics(t, l, target.VMWrites)
		found := 0
		for range 60 {
			s.forgetCalls()
			time.Sleep(100 * time.Millisecond)
			for _, text := range vmMetrics(t, l, target.VMWrites) {
				found++
				var rate float64
				if _, err := fmt.Sscanf(text[strings.LastIndex(text, " "):], "%g", &rate); err != nil || rate < 75 || rate > 125 {
					t.Errorf("got %s, want 100", text)
				}
			}
		}
		if found < 10 {
			t.Errorf("there were %d averages in a minute", found)
		}
	})
}

func TestVMsOfStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 2, false)
		h := s.hosts[0]
		ours := h.add(t, testTag(), "A", true)
		theirs := h.add(t, targettest.NewTag("another run"), "A", true)
		name := domain.Name(ours.ID, "A")
		const stranger = "99999999-2222-4333-8444-555555555555"
		h.domains[stranger] = "<domain id='7'><name>x</name><uuid>" + stranger + "</uuid></domain>"
		// It has the mark of our run, which every user of the host can read, and is not one of its VMs.
		const copied = "88888888-2222-4333-8444-555555555555"
		h.domains[copied] = strings.ReplaceAll(h.domains[ours.ID], ours.ID, copied)
		all := func() domainCounters {
			return domainCounters{
				"host-1": {
					{id: ours.ID, name: name, writes: 1}, {id: theirs.ID, name: domain.Name(theirs.ID, "A")},
					{id: stranger, name: ours.ID}, {id: copied, name: "Domain: '" + name + "'"},
					{id: "77777777-2222-4333-8444-555555555555", name: name + " "}, {id: "no uuid", name: "it's = strange"},
				},
				"host-2": {{id: "66666666-2222-4333-8444-555555555555", name: name, writes: 1e9}}, // its name is ours
			}
		}
		s.instead = all().answer(t)
		l := s.open(t.TempDir())
		want := "host-1 A memory_resident_bytes 0"
		wantMetrics(t, "among strangers", vmMetrics(t, l, target.VMMemory), want)
		time.Sleep(time.Second)
		wantMetrics(t, "later", vmMetrics(t, l, target.VMWrites), "host-1 A disk_writes_per_second 0")
		// Domains with ambiguous names are left out: a libvirt that allows line feeds in names lets them forge lines.
		forged := all()
		forged["host-1"] = append(forged["host-1"], counting{id: stranger, name: "x\n" + ours.ID + " y"})
		s.instead = func(h *simulatedHost, c virsh.Call) ([]byte, error, bool) {
			out, err, ok := forged.answer(t)(h, c)
			return []byte(strings.ReplaceAll(string(out), "Domain: 'x\n"+ours.ID+" y'", "Domain: 'y'")), err, ok
		}
		time.Sleep(time.Second)
		wantMetrics(t, "forged", vmMetrics(t, l, ""))
	})
}

// All VMs of a host are read with one call, and their owners once.
func TestManyVMs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 1500 // more than are described by one call
		s := newSimulated(t, 2, false)
		var list []counting
		for i := range count {
			vm := s.hosts[0].add(t, testTag(), fmt.Sprintf("A-%04d", i), true)
			list = append(list, counting{id: vm.ID, name: domain.Name(vm.ID, vm.Name)})
		}
		s.instead = domainCounters{"host-1": list}.answer(t)
		l := s.open(t.TempDir())
		for range 3 {
			time.Sleep(time.Second)
			if got := vmMetrics(t, l, target.VMMemory); len(got) != count {
				t.Errorf("got %d", len(got))
			}
		}
		if n := s.count("host-1", "dumpxml"); n != 2 {
			t.Errorf("VMs were described %d times", n)
		}
		// Each sample takes one call beside those of the host; the first reading of all is of the host alone.
		if n := s.count("host-1", "list"); n != 3 {
			t.Errorf("domains were read %d times", n)
		}
	})
}

// A host that does not answer any more delays the others once, and for less long than a call may take; then no more.
func TestCutNodeDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 2, false)
		vm := s.hosts[0].add(t, testTag(), "A", true)
		a := counting{id: vm.ID, name: domain.Name(vm.ID, "A")}
		answer := domainCounters{"host-1": {a}}.answer(t)
		var cut atomic.Bool
		s.instead = func(h *simulatedHost, c virsh.Call) ([]byte, error, bool) { return answer(h, c) }
		l, err := open(t.Context(), s.config, target.OpenOptions{}, func(ctx context.Context, c virsh.Call) ([]byte, error) {
			if cut.Load() && strings.Contains(c.URI, "host-2/") {
				<-ctx.Done() // as a connection to nowhere; virsh is ended then
				return nil, virsh.Failed(c, "", context.Cause(ctx))
			}
			return s.run(ctx, c)
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = vmMetrics(t, l, "")
		time.Sleep(time.Second)
		_ = vmMetrics(t, l, "")
		cut.Store(true)
		for i := range 100 {
			time.Sleep(time.Second)
			began := time.Now()
			got := vmMetrics(t, l, target.VMWrites)
			if took := time.Since(began); took > 5*time.Second || i > 0 && took > 0 {
				t.Errorf("sample %d took %v", i, took)
			}
			wantMetrics(t, fmt.Sprint("sample ", i), got, "host-1 A disk_writes_per_second 0")
		}
		cut.Store(false)
		time.Sleep(virsh.QueryLimit) // the attempt that hangs ends, and another is made
		_ = vmMetrics(t, l, "")
		time.Sleep(time.Second)
		nodes, err := l.(target.NodeMeter).SampleNodes(t.Context())
		if err != nil || !slices.ContainsFunc(nodes, func(n target.NodeSample) bool { return n.NodeID == "host-2" }) {
			t.Errorf("the host that is back is not read: %+v, %v", nodes, err)
		}
		cut.Store(true)
		_ = vmMetrics(t, l, "")
		_ = vmMetrics(t, l, "")
		if err := l.Close(); err != nil { // in the middle of an attempt
			t.Error(err)
		}
	})
}

func TestSilentNodesHaveNoVMs(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, 2, false)
	s.hosts[0].down, s.hosts[1].down = true, true
	l := s.open(t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, _, err := l.(target.VMMeter).SampleVMs(ctx, testTag()); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	if _, _, err := l.(target.VMMeter).SampleVMs(t.Context(), target.Tag{}); err == nil {
		t.Error("an invalid tag was taken")
	}
}
