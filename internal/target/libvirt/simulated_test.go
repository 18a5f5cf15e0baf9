package libvirt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// simulated is hosts that are simulated as far as virsh shows them: a runner that answers as the program does. It is for what
// real hosts show too seldom; whether they answer so is for the tests with a lab.
type simulated struct {
	t      *testing.T
	hosts  []*simulatedHost
	config target.Config

	mu    sync.Mutex
	calls []string // "host-1 nodeinfo"
	// instead answers a call, when it says so.
	instead func(h *simulatedHost, c virsh.Call) (out []byte, err error, answered bool)
}

type simulatedHost struct {
	name    string // "host-1"
	uuid    string // of the machine
	pool    string // UUID
	volumes map[string]bool
	domains map[string]string // XML by UUID
	down    bool
	bmc     *targettest.BMC // nil: none
}

const simulatedPool = "11111111-2222-4333-8444-555555555555"

// newSimulated makes hosts that are clones of one image: their pools have one UUID.
func newSimulated(t *testing.T, count int, bmcs bool) *simulated {
	t.Helper()
	s := &simulated{t: t, config: target.Config{Provider: "libvirt", Options: map[string]string{"accelerator": "tcg"}}}
	s.config.Templates = map[string]string{blankTemplate: "blank.qcow2"}
	if bmcs {
		s.config.Allow.NodePower = true
		s.config.Credentials = targettest.Credentials(t)
	}
	for i := range count {
		h := &simulatedHost{
			name: fmt.Sprint("host-", i+1), uuid: fmt.Sprintf("4c4c4544-0058-4b10-8030-b7c04f51%04d", i+1), pool: simulatedPool,
			volumes: map[string]bool{"blank.qcow2": true}, domains: map[string]string{},
		}
		node := target.NodeConfig{ID: h.name, Endpoint: "qemu+tls://" + h.name + "/system"}
		if bmcs {
			h.bmc = targettest.NewBMC(t, h.uuid, func(on bool) { s.set(func() { h.down = !on }) })
			node.BMC = h.bmc.Config
		}
		s.hosts, s.config.Nodes = append(s.hosts, h), append(s.config.Nodes, node)
	}
	return s
}

// set changes something of the hosts.
func (s *simulated) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// count returns how often a command was called since the last time, on one host or ("") all, and forgets all calls.
func (s *simulated) count(host, command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if name, what, _ := strings.Cut(c, " "); what == command && (host == "" || host == name) {
			n++
		}
	}
	return n
}

func (s *simulated) forgetCalls() { s.set(func() { s.calls = nil }) }

func (s *simulated) open(dir string) target.Target {
	s.t.Helper()
	l, err := open(s.t.Context(), s.config, target.OpenOptions{Dir: dir}, s.run)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := l.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return l
}

func simulatedError(c virsh.Call, text string) error {
	return virsh.Failed(c, "error: "+text+"\n", errors.New("exit status 1"))
}

// run is the runner.
func (s *simulated) run(ctx context.Context, c virsh.Call) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var h *simulatedHost
	for _, one := range s.hosts {
		if strings.Contains(c.URI, one.name+"/") {
			h = one
		}
	}
	s.mu.Lock()
	s.calls = append(s.calls, h.name+" "+c.Name())
	instead := s.instead
	s.mu.Unlock()
	if instead != nil {
		if out, err, answered := instead(h, c); answered {
			return out, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.down {
		return nil, simulatedError(c, "failed to connect to the hypervisor; End of file while reading data: Input/output error")
	}
	return h.answer(s.t, c)
}

// argument returns the value of an option of a call.
func argument(c virsh.Call, name string) string {
	for _, a := range c.Args {
		for word := range strings.FieldsSeq(a) {
			if value, ok := strings.CutPrefix(word, "--"+name+"="); ok {
				return strings.TrimSuffix(value, ";")
			}
		}
	}
	return ""
}

func (h *simulatedHost) answer(t *testing.T, c virsh.Call) ([]byte, error) {
	id, volume := argument(c, "domain"), argument(c, "vol")
	switch c.Name() {
	case "nodeinfo", "nodememstats", "version":
		return recorded(t, c.Name()+".txt"), nil
	case "capabilities":
		return []byte("<capabilities><host><uuid>" + h.uuid + "</uuid></host></capabilities>"), nil
	case "sysinfo":
		return []byte("<sysinfo><system><entry name='uuid'>" + h.uuid + "</entry></system></sysinfo>"), nil
	case "pool-info":
		return []byte("State:          running\n"), nil
	case "pool-dumpxml":
		return fmt.Appendf(nil, "<pool type='dir'><name>default</name><uuid>%s</uuid><capacity>1000</capacity><available>900</available>"+
			"<target><path>/pool</path></target></pool>", h.pool), nil
	case "secret-list": // no lease exists
		return []byte(" UUID   Usage\n-------------\n"), nil
	case "pool-refresh":
		return nil, nil
	case "vol-list":
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(h.volumes)) {
			fmt.Fprintf(&b, " %s   /pool/%s\n", name, name)
		}
		return []byte(b.String()), nil
	case "vol-delete":
		if !h.volumes[volume] {
			return nil, simulatedError(c, "Storage volume not found: no storage vol with matching name '"+volume+"'")
		}
		delete(h.volumes, volume)
		return nil, nil
	case "vol-dumpxml":
		if !h.volumes[volume] {
			return nil, simulatedError(c, "Storage volume not found: no storage vol with matching name '"+volume+"'")
		}
		return []byte("<volume><name>" + volume + "</name><capacity>1048576</capacity></volume>"), nil
	case "vol-create", "vol-create-from":
		h.volumes[inside(string(c.Stdin), "<name>", "</name>")] = true
		return nil, nil
	case "define":
		h.domains[inside(string(c.Stdin), "<uuid>", "</uuid>")] = string(c.Stdin)
		return nil, nil
	case "list":
		return []byte(strings.Join(slices.Sorted(maps.Keys(h.domains)), "\n")), nil
	case "dumpxml":
		return h.dump(c)
	case "undefine":
		if h.domains[id] == "" {
			return nil, simulatedError(c, "failed to get domain '"+id+"'")
		}
		delete(h.domains, id)
		return nil, nil
	}
	return nil, simulatedError(c, "unknown command: '"+c.Name()+"'")
}

// inside returns the text between two others.
func inside(text, begin, end string) string {
	_, text, _ = strings.Cut(text, begin)
	text, _, _ = strings.Cut(text, end)
	return text
}

// dump describes domains: virsh continues after an error, and its exit code is that of the last command.
func (h *simulatedHost) dump(c virsh.Call) ([]byte, error) {
	var out, errs []string
	last := ""
	for command := range strings.SplitSeq(strings.Join(c.Args, " "), "; ") {
		_, last, _ = strings.Cut(command, "--domain=")
		if h.domains[last] == "" {
			errs = append(errs, "failed to get domain '"+last+"'\n")
		}
		out = append(out, h.domains[last])
	}
	if h.domains[last] == "" {
		return nil, simulatedError(c, strings.Join(errs, "error: "))
	}
	return []byte(strings.Join(out, "\n")), nil
}

// add defines the domain of a VM on a host, with one data disk, and returns the VM.
func (h *simulatedHost) add(t *testing.T, tag target.Tag, name string, on bool) target.VM {
	t.Helper()
	mark := tag.Mark()
	vm := target.VM{ID: target.VMID(mark, name), Name: name, Group: "OLTP", NodeID: h.name, Disks: []target.Disk{{Device: "/dev/sdb", SizeBytes: 1 << 20}}}
	own, err := domain.NewMetadata(tag, domain.Record{VM: vm, Template: blankTemplate, RAMBytes: 64 << 20, VCPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	volume := storage.VolumeName(mark, vm.ID, "sdb")
	text := domain.Domain{
		Type: domain.TCG, Name: domain.Name(vm.ID, name), UUID: vm.ID, Metadata: own,
		Disks: []domain.Disk{{Index: 1, Path: "/pool/" + volume, Format: storage.Raw, Cache: "none"}},
	}.Text()
	if on {
		text = []byte(strings.Replace(string(text), "<domain ", "<domain id='1' ", 1))
	}
	h.domains[vm.ID], h.volumes[volume] = string(text), true
	return vm
}
