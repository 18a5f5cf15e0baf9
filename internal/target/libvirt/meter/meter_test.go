package meter

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

func TestStats(t *testing.T) {
	t.Parallel()
	list, err := parseStats(recorded(t, "domstats.txt"))
	if err != nil || len(list) != 2 {
		t.Fatalf("got %d domains, %v", len(list), err)
	}
	one := list[0]
	if one.domain != "bragg-OLTP-0001-1b49c3f2a6b0c2d4e6f8" || one.number("cpu.time") != 3921874000 || one.sum("block", "wr.bytes") != 4096+512 ||
		one.sum("net", "rx.bytes") != 4242 || one.number("no.such.thing") != 0 {
		t.Errorf("got %+v", one)
	}
	if list[1].domain != "it's = strange" {
		t.Errorf("got %q", list[1].domain)
	}
	for _, text := range []string{"cpu.time=1\n", "Domain: 'a'\n  nonsense\n", "error: no\n"} {
		if _, err := parseStats([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestReadings(t *testing.T) {
	t.Parallel()
	before, err := parseReading(recorded(t, "nodecpustats.txt"), recorded(t, "nodememstats.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if before.busy != 4e9+1e9 || before.all != 10e9 || before.memory < 24.9 || before.memory > 25.1 {
		t.Errorf("got %+v", before)
	}
	now := *before
	now.at = before.at.Add(2e9)
	now.busy, now.all = before.busy+1e9, before.all+4e9
	now.received = map[string]float64{"new": 2048, "it's = strange": 0}
	for _, s := range between("n", virsh.Facts{CPUs: 2, Megahertz: 1000}, before, &now) {
		want := map[string]float64{
			"CpuUsage.Avg.Percent": 25, "CpuUsage.Avg.Megahertz": 500, "MemUsage.Avg.Percent": before.memory,
			"NetReceived.Avg.KilobytesPerSecond": 1, "NetTransmitted.Avg.KilobytesPerSecond": 0,
		}
		if s.Value != want[s.Metric] || s.Simulated || s.NodeID != "n" {
			t.Errorf("got %+v, want %v", s, want[s.Metric])
		}
	}
	for _, text := range []string{"", "user: x\n"} {
		if _, err := parseReading([]byte(text), recorded(t, "nodememstats.txt")); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func FuzzParseStats(f *testing.F) {
	f.Add(recorded(f, "domstats.txt"))
	f.Add([]byte("Domain: ''\n  net.count=99999999999999999999\n  net.0.rx.bytes=-1\n"))
	f.Add([]byte("Domain: 'a'\n  net.count=1024\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseStats(text)
		if err != nil {
			return
		}
		for _, s := range list {
			if s.number("cpu.time") < 0 || s.sum("net", "rx.bytes") < 0 {
				t.Errorf("%+v is negative", s)
			}
		}
	})
}

func TestNamesInColumns(t *testing.T) {
	t.Parallel()
	const id = "2373c78c-8b5b-8864-95ab-42187a077144"
	for text, want := range map[string]int{
		id + " a\n\nDomain: 'a'\n\n": 1, id + " a      \nDomain: 'a'\n": 1, id + " a b\nDomain: 'a b'\n": 1, "": 0, id + " a\n": 0, "Domain: 'a'\n": 0,
		id + "a\nDomain: 'a'\n": 0, id + " a\nDomain: 'a'\nDomain: 'a'\n": 0, id + " a\n" + id + " b\nDomain: 'a'\n": 0,
	} {
		if _, byID, err := parseVMs([]byte(text)); err != nil || len(byID) != want {
			t.Errorf("%q: %v, %v", text, byID, err)
		}
	}
}

func FuzzParseVMs(f *testing.F) {
	const id = "2373c78c-8b5b-8864-95ab-42187a077144"
	f.Add([]byte(id + " a\nDomain: 'a'\n  cpu.time=1\n"))
	f.Add([]byte(id + " a\n" + id + " b\nDomain: 'a'\nDomain: 'b'\n"))
	f.Add([]byte("Domain: 'a'\n" + id + " a\n"))
	f.Add(append([]byte(id+" it's = strange\n"), recorded(f, "domstats.txt")...))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, byID, err := parseVMs(text)
		if err != nil {
			return
		}
		for id, s := range byID {
			if !virsh.IsUUID(id) || strings.Count(string(text), id) < 1 || len(all) < len(byID) {
				t.Errorf("%q is %+v", id, s)
			}
			for name, value := range countersOf(s) {
				if value < 0 || value != value {
					t.Errorf("%s is %v", name, value)
				}
			}
		}
		if names := slices.Collect(maps.Keys(byID)); len(names) > strings.Count(string(text), "Domain: '") {
			t.Errorf("%d domains", len(names))
		}
	})
}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
