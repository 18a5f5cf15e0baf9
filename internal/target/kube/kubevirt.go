package kube

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/events"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/kube/virt"
	"github.com/braggdev/bragg/internal/trust"
)

// machines are VMs of KubeVirt.
type machines struct {
	cluster *cluster
	virt    *virt.Runner
}

var (
	_ runner   = (*machines)(nil)
	_ contact  = (*machines)(nil)
	_ reporter = (*machines)(nil)
)

func newMachines(c *cluster, s settings, authority *trust.Authority) *machines {
	l := limitsOf(s.patience)
	return &machines{c, virt.New(virt.Site{
		Client: c.client, Boot: c.boot, Off: c.power.off, Dead: c.power.dead,
		Events: func(ctx context.Context, uid string) string {
			if said := events.Of(ctx, c.client, uid); len(said) > 0 {
				return said.String()
			}
			return ""
		},
	}, s.virt, s.pods, virt.Limits{Start: l.start, Unschedulable: l.unschedulable, Image: l.image, Stop: l.stop, Look: l.look}, authority)}
}

// boot is what VMs of KubeVirt boot.
func (c *cluster) boot(template string) virt.Boot {
	if text := c.config.Templates[template]; text != "" {
		return virt.ReadBoot(text)
	}
	return virt.ReadBoot(c.settings.image)
}

func (m *machines) start(ctx context.Context, r object.Record, tag object.Owner) error {
	return m.virt.Start(ctx, r, tag)
}

func (m *machines) stop(ctx context.Context, r object.Record) error   { return m.virt.Stop(ctx, r) }
func (m *machines) remove(ctx context.Context, r object.Record) error { return m.virt.Remove(ctx, r) }

func (m *machines) removeSecret(ctx context.Context, r object.Record) error {
	return m.virt.RemoveSecret(ctx, r)
}

func (m *machines) states(ctx context.Context, mark string) (map[string]state, error) {
	all, err := m.virt.States(ctx, mark)
	if err != nil {
		return nil, err
	}
	by := make(map[string]state, len(all))
	for id, s := range all {
		by[id] = powerOf(s)
		if !s.On { // it starts where its record says
			by[id] = state{power: target.PowerOff, ended: by[id].ended}
		}
	}
	return by, nil
}

func powerOf(s virt.State) state {
	p := target.PowerOff
	if s.On {
		p = target.PowerOn
	}
	return state{power: p, node: s.Node, ended: ending{s.Reason, s.At}}
}

func (m *machines) now(ctx context.Context, id string) (state, error) {
	s, err := m.virt.Now(ctx, id)
	return powerOf(s), err
}

func (m *machines) address(ctx context.Context, id string) (string, error) {
	return m.virt.Address(ctx, id)
}

func (m *machines) tunnel(ctx context.Context, id string, port int) (net.Conn, error) {
	return m.virt.Tunnel(ctx, id, port)
}

func (m *machines) report(ctx context.Context, mark string, put func(target.PlatformEvent)) (stop func(), err error) {
	return m.virt.Report(ctx, mark, put)
}

// complete adds to the record of a new VM what differs from pods: how its guest finds its disks, and what it boots from.
func (m *machines) complete(ctx context.Context, r *object.Record, spec target.VMSpec) error {
	boot := m.cluster.boot(spec.Template)
	r.Block, r.Topology, r.VM.Disks = true, spec.Topology, m.cluster.settings.virt.Disks(spec.DiskBytes, boot)
	if boot.Claim == "" {
		return nil
	}
	system, err := m.system(ctx, boot.Claim)
	if err != nil {
		return fmt.Errorf("template %q: %w", spec.Template, err)
	}
	r.System = system
	return nil
}

// system reads the claim that system disks are copies of. A DataVolume of its name says whether it is filled.
func (m *machines) system(ctx context.Context, claim string) (*object.System, error) {
	client := m.cluster.client
	found, err := api.Get[corev1.PersistentVolumeClaim](ctx, client, api.Claims, claim)
	if err != nil {
		return nil, err
	}
	if err := m.filled(ctx, claim); err != nil {
		return nil, err
	}
	size, ok := found.Status.Capacity[corev1.ResourceStorage]
	if !ok {
		size = found.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	return &object.System{
		Source: claim, SizeBytes: size.Value(), Block: found.Spec.VolumeMode != nil && *found.Spec.VolumeMode == corev1.PersistentVolumeBlock,
	}, nil
}

// dataVolume is what this program reads of cdi.kubevirt.io/v1beta1.
type dataVolume struct {
	Status struct {
		Phase      string `json:"phase"`
		Progress   string `json:"progress"`
		Conditions []struct {
			Type, Status, Reason, Message string
		} `json:"conditions"`
	} `json:"status"`
}

// filled returns why a claim does not have its content yet, as far as that is known.
func (m *machines) filled(ctx context.Context, name string) error {
	found, err := api.Get[dataVolume](ctx, m.cluster.client, api.DataVolumes, name)
	if api.NotFound(err) || api.Forbidden(err) {
		return nil // it was filled in another way
	}
	if err != nil {
		return err
	}
	s := found.Status
	if s.Phase == "Succeeded" || s.Phase == "" {
		return nil
	}
	text := fmt.Sprintf("data volume %q is %s", name, s.Phase)
	if s.Progress != "" && s.Progress != "N/A" {
		text += ", " + api.Words(s.Progress)
	}
	for _, c := range s.Conditions {
		if c.Message != "" && (c.Type == "Running" || c.Status == "False") {
			text += fmt.Sprintf("; %s: %s", c.Type, api.Words(c.Message))
		}
	}
	return &diag.Error{Code: "kube-data-volume", Exit: diag.ExitUnavailable, Message: text, Hint: "kubectl describe datavolume " + name}
}

// guests are logins to VMs of KubeVirt.
type guests struct {
	hosts    *cluster
	machines *machines
	calls    *agents
}

// LoginVM is the login of guests: root, or the guest_user of the target file for any other user.
func (g *guests) LoginVM(ctx context.Context, vm target.VM, user string) (target.Login, error) {
	at, err := g.calls.AddressOf(ctx, vm)
	if err != nil {
		return target.Login{}, fmt.Errorf("find the address of vm %q: %w", vm.Name, err)
	}
	l, err := g.machines.virt.Login(vm, at, user)
	if err != nil {
		return target.Login{}, err
	}
	return l, g.hosts.config.LogIn(ctx, &l)
}

// Boot times of VMs whose image is on the node.
const (
	bootCloud  = 45 * time.Second
	bootKernel = 10 * time.Second
)

// describe adds to an inventory what VMs of KubeVirt have and pods do not.
func (m *machines) describe(i *target.Inventory) {
	i.Systems, i.Topologies, i.Hypervisor = true, true, "kvm"
	i.Logins = &target.Logins{Password: m.cluster.config.GuestCredential()}
	for _, name := range i.Templates {
		b := m.cluster.boot(name)
		i.Boots[name] = target.Boot{Alone: bootCloud, Basis: "a cloud image under KubeVirt, assumed"}
		if b.Kernel {
			i.Boots[name] = target.Boot{Alone: bootKernel, Basis: "an image of bragg image build under KubeVirt, assumed", AgentOnly: true}
			i.Logins.Without = append(i.Logins.Without, name)
		}
	}
}
