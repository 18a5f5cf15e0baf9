package vcsim

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/lab/agentvm"
)

// guests are the agents of VMs.
type guests struct {
	server *Server
	work   sync.WaitGroup

	changes chan change

	mu    sync.Mutex
	next  int
	known map[types.ManagedObjectReference]*guest
}

// guest is the agent of one VM that is on.
type guest struct {
	process *exec.Cmd
	ended   chan struct{}
	log     *os.File
}

// change is one change of a VM's power.
type change struct {
	vm   types.ManagedObjectReference
	on   bool
	gone bool
}

// changesMax is how many changes may wait for the start or end of an agent.
const changesMax = 4096

// watch begins to follow the power of all VMs. It listens to the registry of the simulator: WaitForUpdates on a view of
// VMs comes to a deadlock there when VMs are made at the same time.
func watch(s *Server) (*guests, error) {
	g := &guests{server: s, known: map[types.ManagedObjectReference]*guest{}, changes: make(chan change, changesMax)}
	s.Model.Map().AddHandler(listener{g})
	g.work.Go(func() {
		for {
			select {
			case c := <-g.changes:
				g.set(c.vm, c.on)
				if c.gone {
					g.remove(c.vm)
				}
			case <-s.ctx.Done():
				return
			}
		}
	})
	return g, nil
}

// listener is called by the simulator with locks held.
type listener struct{ guests *guests }

func (l listener) Reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "BraggGuests", Value: "guests"}
}

func (l listener) PutObject(*simulator.Context, mo.Reference) {}

func (l listener) UpdateObject(_ *simulator.Context, one mo.Reference, changes []types.PropertyChange) {
	for _, c := range changes {
		if c.Name == "runtime.powerState" {
			l.guests.changes <- change{vm: one.Reference(), on: c.Val == types.VirtualMachinePowerStatePoweredOn}
		}
	}
}

func (l listener) RemoveObject(_ *simulator.Context, ref types.ManagedObjectReference) {
	if ref.Type == "VirtualMachine" {
		l.guests.changes <- change{vm: ref, gone: true}
	}
}

// set starts or kills the agent of a VM.
func (g *guests) set(vm types.ManagedObjectReference, on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	running := g.known[vm]
	switch {
	case on && running == nil:
		if err := g.start(vm); err != nil {
			fmt.Fprintf(os.Stderr, "vcenter: start the agent of %s: %v\n", vm.Value, err)
		}
	case !on && running != nil:
		delete(g.known, vm)
		if running.process == nil {
			g.server.machines.Stop(vm.Value)
		} else {
			running.kill()
		}
		g.show(vm, "")
	}
}

func (g *guest) kill() {
	_ = g.process.Process.Kill()
	<-g.ended
	_ = g.log.Close()
}

// Kill ends the agent of a VM, as a crash of its guest does.
func (s *Server) Kill(vm types.ManagedObjectReference) { s.guests.set(vm, false) }

// start runs the agent of a VM that has an identity.
func (g *guests) start(vm types.ManagedObjectReference) error {
	o := g.server.options
	machine, ok := g.server.Model.Map().Get(vm).(*simulator.VirtualMachine)
	if !ok || len(o.Agent) == 0 && g.server.machines == nil {
		return nil
	}
	var text string
	g.server.locked(machine, func() { text = extra(machine, "guestinfo.userdata") })
	if text == "" {
		return nil
	}
	if g.server.machines != nil {
		return g.boot(machine, text)
	}
	address := g.address()
	dir, err := os.MkdirTemp(o.Dir, "guest-")
	if err != nil {
		return err
	}
	config, err := seed(text, dir, address)
	if err != nil {
		return err
	}
	argument, err := json.Marshal(config)
	if err != nil {
		return err
	}
	logFile, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	c := exec.Command(o.Agent[0], append(o.Agent[1:len(o.Agent):len(o.Agent)], string(argument))...)
	c.Stdout, c.Stderr, c.SysProcAttr = logFile, logFile, dieWithThis()
	if err := c.Start(); err != nil {
		_ = logFile.Close()
		return err
	}
	one := &guest{process: c, ended: make(chan struct{}), log: logFile}
	g.known[vm] = one
	g.work.Go(func() {
		_ = c.Wait()
		close(one.ended)
	})
	g.show(vm, address)
	return nil
}

// address returns an address of this machine that no other guest has.
func (g *guests) address() string {
	g.next++
	half := g.server.options.Addresses
	if half == "" {
		half = fmt.Sprintf("127.%d", 64+os.Getpid()%128)
	}
	return fmt.Sprintf("%s.%d.%d", half, g.next/250+1, g.next%250+1)
}

// boot starts a VM of Machines.
func (g *guests) boot(machine *simulator.VirtualMachine, userData string) error {
	text, err := base64.StdEncoding.DecodeString(userData)
	if err != nil {
		return err
	}
	disks, err := g.disks(machine)
	if err != nil {
		return err
	}
	vm := agentvm.VM{ID: machine.Self.Value, UserData: text, Address: g.address(), Disks: disks}
	if err := g.server.machines.Start(vm); err != nil {
		return err
	}
	g.known[machine.Self] = &guest{}
	g.show(machine.Self, vm.Address)
	return nil
}

// disks makes the files of a VM's data disks, which keep their data until the VM is removed.
func (g *guests) disks(machine *simulator.VirtualMachine) ([]agentvm.Disk, error) {
	var record struct {
		VM struct {
			Disks []struct {
				Device    string `json:"device"`
				Path      string `json:"path"`
				SizeBytes int64  `json:"size_bytes"`
			} `json:"disks"`
		} `json:"vm"`
	}
	var text string
	g.server.locked(machine, func() { text = extra(machine, "bragg.record") })
	plain, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(plain, &record)
	}
	var all []agentvm.Disk
	for i, d := range record.VM.Disks {
		path := filepath.Join(g.server.options.Dir, fmt.Sprintf("%s-%d.raw", machine.Self.Value, i))
		f, made := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if made == nil {
			made = f.Truncate(d.SizeBytes)
			_ = f.Close()
		}
		if made != nil {
			return nil, made
		}
		all = append(all, agentvm.Disk{Device: d.Device, Path: path})
		if d.Path != "" {
			all = append(all, agentvm.Disk{Device: d.Path, Path: path})
		}
	}
	return all, err
}

// remove removes the files of a VM that is gone.
func (g *guests) remove(vm types.ManagedObjectReference) {
	files, _ := filepath.Glob(filepath.Join(g.server.options.Dir, vm.Value+"-*.raw"))
	for _, path := range files {
		_ = os.Remove(path)
	}
}

func extra(machine *simulator.VirtualMachine, key string) string {
	for _, one := range machine.Config.ExtraConfig {
		if v := one.GetOptionValue(); v.Key == key {
			text, _ := v.Value.(string)
			return text
		}
	}
	return ""
}

// seed does what cloud-init would do with the user data: it writes the files of the agent, below dir, and returns the
// agent's configuration.
func seed(encoded, dir, address string) (map[string]any, error) {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	var user struct {
		Files []struct {
			Path, Permissions, Content string
		} `yaml:"write_files"`
	}
	if err := yaml.Unmarshal(text, &user); err != nil {
		return nil, err
	}
	config := map[string]any{}
	places := map[string]string{}
	for _, f := range user.Files {
		if filepath.Base(f.Path) == "agent.json" {
			if err := json.Unmarshal([]byte(f.Content), &config); err != nil {
				return nil, err
			}
			continue
		}
		at := filepath.Join(dir, filepath.Base(f.Path))
		places[f.Path] = at
		if err := os.WriteFile(at, []byte(f.Content), 0o600); err != nil {
			return nil, err
		}
	}
	files, ok := config["tls"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the user data holds no agent: %s", strings.Join(keys(config), ", "))
	}
	for name, at := range files {
		files[name] = places[fmt.Sprint(at)]
	}
	_, port, err := net.SplitHostPort(fmt.Sprint(config["listen"]))
	config["listen"] = net.JoinHostPort(address, port)
	config["metrics_listen"] = net.JoinHostPort(address, "7402")
	return config, err
}

func keys(m map[string]any) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}

// show makes the tools of a guest report its address.
func (g *guests) show(vm types.ManagedObjectReference, address string) {
	machine, ok := g.server.Model.Map().Get(vm).(*simulator.VirtualMachine)
	if !ok {
		return
	}
	g.server.locked(machine, func() {
		g.server.Model.Service.Context.Update(machine, []types.PropertyChange{{Name: "guest.ipAddress", Val: address}})
	})
}

// locked holds the lock of an object in the simulator.
func (s *Server) locked(one interface {
	Reference() types.ManagedObjectReference
}, do func()) {
	s.Model.Service.Context.WithLock(one, do)
}

func (g *guests) close() {
	g.mu.Lock()
	for vm, one := range g.known {
		if one.process != nil {
			one.kill()
		}
		delete(g.known, vm)
	}
	g.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		g.work.Wait()
		close(ended)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
