package guest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/agent"
)

func goodSeed() Seed {
	return Seed{
		Version: SeedVersion, InstanceID: "run-7.db_1", Hostname: "db-1", MachineID: strings.Repeat("0a", 16),
		Network: []Link{{MAC: "52:54:00:00:00:01", Address: "10.0.2.10/24", Gateway: "10.0.2.1", MTU: 9000}, {}},
		Agent:   agent.Config{VM: "DB 1", Listen: ":7401"}, Files: map[string]string{FilesDir + "/agent.key": "x"},
	}
}

func TestReadSeed(t *testing.T) {
	t.Parallel()
	good, err := json.Marshal(goodSeed())
	if err != nil {
		t.Fatal(err)
	}
	s, err := ReadSeed(strings.NewReader(string(good)))
	if err != nil || s.Network[0] != goodSeed().Network[0] || s.Agent.VM != "DB 1" {
		t.Errorf("got %+v, %v", s, err)
	}
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "#cloud-config", "unknown key": strings.Replace(string(good), "{", `{"colour":1,`, 1), "two documents": string(good) + string(good),
		"too large": string(good) + strings.Repeat(" ", seedBytesMax),
	} {
		if _, err := ReadSeed(strings.NewReader(text)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestSeedFaults(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Seed){
		"version":                  func(s *Seed) { s.Version = 2 },
		"instance_id":              func(s *Seed) { s.InstanceID = "../../etc" },
		"hostname":                 func(s *Seed) { s.Hostname = "a b" },
		"machine_id":               func(s *Seed) { s.MachineID = strings.Repeat("0", 32) },
		"six bytes":                func(s *Seed) { s.Network[0].MAC = "52:54" },
		"with its prefix":          func(s *Seed) { s.Network[0].Address = "10.0.2.10" },
		"cannot be a VM's":         func(s *Seed) { s.Network[0].Address = "127.0.0.1/8" },
		"is not in":                func(s *Seed) { s.Network[0].Gateway = "10.0.3.1" },
		"the VM's own address":     func(s *Seed) { s.Network[0].Gateway = "10.0.2.10" },
		"gateway \"router\"":       func(s *Seed) { s.Network[0].Gateway = "router" },
		"without an address":       func(s *Seed) { s.Network[0].Address = "" },
		"mtu":                      func(s *Seed) { s.Network[0].MTU = 100 },
		"interfaces":               func(s *Seed) { s.Network = make([]Link, 17) },
		"agent.listen":             func(s *Seed) { s.Agent.Listen = "" },
		"inherits no":              func(s *Seed) { s.Agent.ConnectionFD = 3 },
		"file \"/init\"":           func(s *Seed) { s.Files["/init"] = "x" },
		"file \"/etc/bragg/../x\"": func(s *Seed) { s.Files["/etc/bragg/../x"] = "x" },
		"file \"etc/bragg/x\"":     func(s *Seed) { s.Files["etc/bragg/x"] = "x" },
	} {
		s := goodSeed()
		spoil(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	all := Seed{}
	if err := all.Check(); strings.Count(err.Error(), "\n") < 3 {
		t.Errorf("not all faults are reported: %v", err)
	}
}

func FuzzReadSeed(f *testing.F) {
	good, err := json.Marshal(goodSeed())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	f.Add(`{"version":1,"files":{"/etc/bragg/\u0000":""}}`)
	f.Add(`{"network":[{"address":"::/0","gateway":"::1"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadSeed(strings.NewReader(text))
		if err != nil {
			return
		}
		for name := range s.Files {
			if !strings.HasPrefix(name, FilesDir+"/") || strings.Contains(name, "..") && strings.Contains(name, "/../") {
				t.Errorf("a seed writes %q", name)
			}
		}
		if s.Hostname == "" || len(s.Hostname) > 63 || strings.ContainsAny(s.InstanceID, "/\x00 ") {
			t.Errorf("accepted %+v", s)
		}
	})
}

// Whatever a scenario calls its VMs, they get a name that hosts may have, and that does not change when it is made again.
func TestHostname(t *testing.T) {
	t.Parallel()
	for vm, want := range map[string]string{
		"DB-0001": "db-0001", "__My VM__": "my-vm", "": "vm", "über": "ber", "-o": "o", "a..b": "a-b",
		strings.Repeat("x", 62) + "-y": strings.Repeat("x", 62),
	} {
		if got := Hostname(vm); got != want {
			t.Errorf("%q becomes %q, want %q", vm, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := Hostname(rapid.String().Draw(t, "vm"))
		if len(name) == 0 || len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" ||
			name[0] == '-' || name[len(name)-1] == '-' || Hostname(name) != name {
			t.Fatalf("got %q", name)
		}
	})
}

func TestModuleOrder(t *testing.T) {
	t.Parallel()
	m := Modules{
		Load: []string{"net", "disk", "other_disk", "absent"},
		Modules: map[string]Module{
			"net": {Needs: []string{"ring", "failover"}}, "ring": {}, "failover": {Needs: []string{"built_in"}},
			"disk": {Needs: []string{"ring"}, Aliases: []string{"pci:v0000AAAAd*"}}, "other_disk": {Aliases: []string{"pci:v0000BBBBd*"}},
		},
	}
	if got, want := m.Order([]string{"pci:v0000AAAAd1", "acpi:PNP"}), []string{"ring", "failover", "net", "disk"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	circle := Modules{Load: []string{"a"}, Modules: map[string]Module{"a": {Needs: []string{"b"}}, "b": {Needs: []string{"a"}}}}
	if got := circle.Order(nil); len(got) != 2 {
		t.Errorf("a circle gives %v", got)
	}
}
