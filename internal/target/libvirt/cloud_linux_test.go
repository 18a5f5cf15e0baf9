package libvirt

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	agentpool "github.com/braggdev/bragg/internal/agent/pool"
	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/trust"
)

const (
	cloudTemplate = "cloud"
	cloudVolume   = "cloud.qcow2"
	cloudUser     = "tester"
	// bakedID is the machine-id of a template that was not emptied, with which all clones begin.
	bakedID = "0123456789abcdef0123456789abcdef"
)

// distributionWithin only guards against hanging: an emulated distribution takes two minutes or ten.
const distributionWithin = 30 * time.Minute

// Clones of a distribution's cloud image come up by cloud-init: with agents, identities and addresses of their own, one way in, and
// as the same ones after their power was cut.
func TestCloudImage(t *testing.T) {
	path := testreq.CloudImage(t)
	r := newRig(t)
	wanted.Store(true)
	t.Run("static addresses", func(t *testing.T) { newClones(t, r, path, r.config).live(t) })
	t.Run("DHCP", func(t *testing.T) {
		config := r.config
		config.Network, config.Addresses = r.lend(t), target.Addresses{DHCP: true}
		config.Nodes = config.Nodes[:1]
		baked := testreq.Retouched(t, path, map[string]string{"/etc/machine-id": bakedID + "\n"})
		newClones(t, r, baked, config).live(t)
	})
}

// lend makes a network of libvirt on the first host, which lends addresses, and a way there for this machine.
func (r *rig) lend(t *testing.T) (name string) {
	t.Helper()
	name = "lending"
	third := r.Subnet.Addr().As4()[2]
	xml := filepath.Join(t.TempDir(), "network.xml")
	text := fmt.Sprintf("<network><name>%s</name><forward mode='open'/><bridge name='lending0' stp='off'/>"+
		"<ip address='10.214.%d.1' prefix='24'><dhcp><range start='10.214.%[2]d.100' end='10.214.%[2]d.200'/></dhcp></ip></network>", name, third)
	if err := os.WriteFile(xml, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.virsh(t, 0, "net-define", xml)
	r.virsh(t, 0, "net-start", name)
	command(t, "ip", "route", "add", fmt.Sprintf("10.214.%d.0/24", third), "via", r.Hosts[0].Address.String(), "dev", r.Interface)
	return name
}

// clones are two VMs of one image.
type clones struct {
	rig    *rig
	target target.Target
	dir    string
	tag    target.Tag
	vms    []target.VM
	static bool
	key    string   // path of the private key that guests let in
	on     sync.Map // when VMs were switched on whose agents did not answer since, by name
}

func newClones(t *testing.T, r *rig, path string, config target.Config) *clones {
	t.Helper()
	volume := filepath.Join(r.PoolDir(), cloudVolume)
	command(t, "cp", "--sparse=always", path, volume)
	t.Cleanup(func() { _ = os.Remove(volume) })
	c := &clones{rig: r, dir: t.TempDir(), tag: targettest.NewTag("run-1"), key: filepath.Join(t.TempDir(), "key"), static: !config.Addresses.DHCP}
	command(t, testreq.Program(t, "ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", c.key)
	public, err := os.ReadFile(c.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	config.Options, config.Templates = maps.Clone(config.Options), map[string]string{cloudTemplate: cloudVolume}
	config.Options["guest_user"], config.Options["guest_key"] = cloudUser, strings.TrimSpace(string(public))
	authority, err := trust.New("run", 4*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	o := target.OpenOptions{Dir: c.dir, Authority: authority, AgentProgram: func(string) (string, error) { return agentBinary() }}
	if c.target, err = open(t.Context(), config, o, virsh.Run); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.target.Close() })
	specs := specsOn(config, "Clone", 2)
	for i := range specs {
		specs[i].Template, specs[i].RAMBytes, specs[i].DiskBytes = cloudTemplate, 768<<20, []int64{64 << 20}
	}
	if c.vms, err = c.target.Create(t.Context(), c.tag, specs); err != nil {
		t.Fatal(err)
	}
	return c
}

// live takes two clones through all of it.
func (c *clones) live(t *testing.T) {
	r := *c.rig
	r.config.Templates = map[string]string{cloudTemplate: cloudVolume, blankTemplate: "blank.qcow2"}
	defer func() {
		if err := c.target.Delete(context.WithoutCancel(t.Context()), c.tag, c.vms); err != nil {
			t.Error(err)
		}
		if left := r.leftovers(t, c.dir); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}()
	c.power(t, c.vms, true)
	first := c.greet(t)
	for i, vm := range c.vms {
		if id := image.MachineID(vm.ID); first[vm.Name].MachineID != id {
			t.Errorf("%s has the machine-id %q, want %q", vm.Name, first[vm.Name].MachineID, id)
		}
		if c.static && !slices.Equal(first[vm.Name].Addresses, vm.Addresses) {
			t.Errorf("%s has the addresses %q, want %q", vm.Name, first[vm.Name].Addresses, vm.Addresses)
		}
		if !c.static && len(first[vm.Name].Addresses) != 1 {
			t.Errorf("clone %d has the addresses %q", i, first[vm.Name].Addresses)
		}
	}
	if shared := agentpool.SharedIdentities(first); len(shared) > 0 {
		t.Fatalf("clones share %v", shared)
	}
	// Nothing was given time to settle.
	c.power(t, c.vms[:1], false)
	c.power(t, c.vms[:1], true)
	second := c.greet(t)
	name := c.vms[0].Name
	if a, b := first[name], second[name]; a.Boot == b.Boot || a.MachineID != b.MachineID || !slices.Equal(a.Addresses, b.Addresses) {
		t.Errorf("after a power cut %+v became %+v", a, b)
	}
	keys := map[string]bool{}
	for _, vm := range c.vms {
		c.load(t, vm)
		keys[c.enter(t, vm, second[vm.Name])] = true
		c.admits(t, vm)
	}
	if len(keys) != len(c.vms) {
		t.Error("clones have the same host key")
	}
	c.share(t, second)
}

func (c *clones) power(t *testing.T, vms []target.VM, on bool) {
	t.Helper()
	power := c.target.(target.VMPower)
	act := power.PowerOffVMs
	if on {
		act = power.PowerOnVMs
		for _, vm := range vms {
			c.on.Store(vm.Name, time.Now())
		}
	}
	if err := act(t.Context(), c.tag, vms); err != nil {
		t.Fatal(err)
	}
}

// dial returns the agent of a clone that may be booting.
func (c *clones) dial(t *testing.T, vm target.VM) (*client.Client, wire.Hello, error) {
	ctx, cancel := context.WithTimeout(t.Context(), distributionWithin)
	defer cancel()
	conn, err := c.target.(target.AgentDialer).DialAgent(ctx, vm)
	if err != nil {
		return nil, wire.Hello{}, err
	}
	client := client.New(conn, client.Options{})
	hello, err := client.Hello(ctx)
	return client, hello, err
}

// greet asks all clones who they are.
func (c *clones) greet(t *testing.T) map[string]wire.Hello {
	t.Helper()
	hellos, errs := make([]wire.Hello, len(c.vms)), make([]error, len(c.vms))
	var all sync.WaitGroup
	for i, vm := range c.vms {
		all.Go(func() {
			client, hello, err := c.dial(t, vm)
			if client != nil {
				defer client.Close()
			}
			hellos[i], errs[i] = hello, err
			if on, ok := c.on.LoadAndDelete(vm.Name); ok {
				t.Logf("%s: %v after power on: %+v", vm.Name, time.Since(on.(time.Time)).Round(time.Second), hello)
			}
		})
	}
	all.Wait()
	by := map[string]wire.Hello{}
	for i, vm := range c.vms {
		if errs[i] != nil {
			tellOf(t, c.target, vm)
			t.Fatal(errs[i])
		}
		by[vm.Name] = hellos[i]
	}
	return by
}

// load writes to the data disk of a clone.
func (c *clones) load(t *testing.T, vm target.VM) {
	t.Helper()
	client, _, err := c.dial(t, vm)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var wrote atomic.Uint64
	size := vm.Disks[0].SizeBytes
	err = client.Run(t.Context(), load.Workload{
		Name: "write", Group: vm.Group, VM: vm.Name, Generator: "native", ConfigName: "write.fio",
		Config:  "[load]\nfilename=/dev/sdb\nioengine=libaio\nrw=write\nbs=64k\nsize=8m\niodepth=4\ndirect=1\n",
		Devices: []load.Device{{Name: "/dev/sdb", Path: vm.Disks[0].Path, SizeBytes: size, Consent: load.Consent{Own: true, SizeBytes: size}}},
	}, load.SinkFunc(func(iv interval.Interval) { wrote.Add(iv.Directions[interval.Write].Bytes) }))
	if err != nil || wrote.Load() != 8<<20 {
		t.Errorf("%s wrote %d bytes, %v", vm.Name, wrote.Load(), err)
	}
	if written := c.rig.readDisk(t, vm, vm.Disks[0], 0, 1<<20); strings.Count(string(written), "\x00") == len(written) {
		t.Errorf("nothing is on the disk of %s", vm.Name)
	}
}

// ssh runs a command in a clone, as a user with a key, and returns what both said.
func (c *clones) ssh(t *testing.T, address, user, key string, args ...string) (string, error) {
	t.Helper()
	known := filepath.Join(filepath.Dir(c.key), address)
	options := []string{"-i", key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "ConnectTimeout=120", "-o", "LogLevel=ERROR",
		"-o", "UserKnownHostsFile=" + known, "-o", "GlobalKnownHostsFile=none", "-o", "StrictHostKeyChecking=accept-new",
		"-o", "HostKeyAlgorithms=ssh-ed25519", "-F", "none"}
	out, err := exec.CommandContext(t.Context(), testreq.Program(t, "ssh"),
		slices.Concat(options, []string{user + "@" + address}, args)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// enter logs in to a clone as whom the target file names, and by no other way, and returns the clone's host key.
func (c *clones) enter(t *testing.T, vm target.VM, hello wire.Hello) (hostKey string) {
	t.Helper()
	address := hello.Addresses[0]
	inside := func(args ...string) string {
		t.Helper()
		said, err := c.ssh(t, address, cloudUser, c.key, args...)
		if err != nil {
			t.Errorf("%s in %s: %v: %s", args, vm.Name, err, said)
		}
		return said
	}
	other := filepath.Join(t.TempDir(), "other")
	command(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other)
	if said := inside("cat /etc/machine-id; hostname"); said != hello.MachineID+"\n"+strings.ToLower(vm.Name) {
		t.Errorf("%s says that it is %q", vm.Name, said)
	}
	for who, with := range map[string]string{cloudUser: other, "root": c.key, "debian": c.key} {
		// The server names the ways that it offers.
		if said, err := c.ssh(t, address, who, with, "true"); err == nil || !strings.Contains(said, "Permission denied (publickey)") {
			t.Errorf("%s of %s: %v %q", who, vm.Name, err, said)
		}
	}
	for line := range strings.Lines(inside("sudo cat /etc/shadow")) {
		fields := strings.Split(line, ":")
		if !strings.HasPrefix(fields[1], "!") && !strings.HasPrefix(fields[1], "*") {
			t.Errorf("%s: %s has a password", vm.Name, fields[0])
		}
	}
	if said := inside("sudo find /etc/bragg -type f ! \\( -user root -perm 0600 \\)"); said != "" {
		t.Errorf("%s: others read %q", vm.Name, said)
	}
	// On a second start cloud-init has nothing to do, and its record of the first may be lost with the power.
	if said := inside("sudo cloud-init status --wait; sudo cloud-init schema --system"); !strings.Contains(said, "status: done") ||
		!strings.Contains(strings.ToLower(said), "valid cloud-config") {
		t.Errorf("cloud-init of %s: %s", vm.Name, said)
	}
	t.Logf("%s: %s", vm.Name, inside("cloud-init analyze blame | sed -n 3,8p; systemd-analyze; systemctl --no-legend --failed; ls -l /var/log/journal"))
	text, err := os.ReadFile(filepath.Join(filepath.Dir(c.key), address))
	if err != nil {
		t.Fatal(err)
	}
	_, hostKey, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
	return hostKey
}

// admits checks the logins for programs of scenarios: as root and as the user of the target file, with the host key that the run chose.
func (c *clones) admits(t *testing.T, vm target.VM) {
	t.Helper()
	for _, who := range []string{"root", cloudUser} {
		l, err := c.target.(target.GuestLogins).LoginVM(t.Context(), vm, who)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		key, known := filepath.Join(dir, "key"), filepath.Join(dir, "known")
		for path, text := range map[string]string{key: l.Key, known: l.Address + " " + l.HostKey + "\n"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command("ssh", "-F", "none", "-i", key, "-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile="+known, "-o",
			"StrictHostKeyChecking=yes", "-o", "BatchMode=yes", l.User+"@"+l.Address, "id -un; sudo -n id -un; command -v /usr/bin/python3").CombinedOutput()
		if err != nil || string(out) != who+"\nroot\n/usr/bin/python3\n" {
			t.Errorf("%s of %s: %v: %s", who, vm.Name, err, out)
		}
	}
}

// share makes the second clone what clones of a bad template are, step by step: that is noticed each time.
func (c *clones) share(t *testing.T, hellos map[string]wire.Hello) {
	t.Helper()
	one, two := hellos[c.vms[0].Name], hellos[c.vms[1].Name]
	names := []string{c.vms[0].Name, c.vms[1].Name}
	dummy := netip.MustParseAddr(one.Addresses[0]).String()
	for _, step := range []struct {
		script string
		want   agentpool.SharedIdentity
	}{
		{"echo " + one.MachineID + " | sudo tee /etc/machine-id", agentpool.SharedIdentity{Kind: "machine-id", Value: one.MachineID, VMs: names}},
		{"sudo ip address add " + dummy + "/32 dev $(basename $(dirname /sys/class/net/*/device))",
			agentpool.SharedIdentity{Kind: "address", Value: dummy, VMs: names}},
	} {
		if said, err := c.ssh(t, two.Addresses[0], cloudUser, c.key, step.script); err != nil {
			t.Fatalf("%s: %v: %s", step.script, err, said)
		}
		shared := agentpool.SharedIdentities(c.greet(t))
		if !slices.ContainsFunc(shared, func(s agentpool.SharedIdentity) bool {
			return s.Kind == step.want.Kind && s.Value == step.want.Value && slices.Equal(s.VMs, step.want.VMs)
		}) {
			t.Errorf("after %q the clones share %v", step.script, shared)
		}
	}
}
