package libvirt

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
)

// powered is a Target whose nodes have BMCs.
type powered struct {
	*Target
	*bmc.Nodes
}

var (
	_ target.NodePower   = powered{}
	_ target.NodeLimiter = powered{}
)

// PowerOffNode cuts the power of a node, when nothing speaks against it.
func (p powered) PowerOffNode(ctx context.Context, nodeID string) error {
	return p.takePower(ctx, nodeID, p.Nodes.PowerOffNode)
}

// ShutdownNode asks the system of a node to stop.
func (p powered) ShutdownNode(ctx context.Context, nodeID string) error {
	return p.takePower(ctx, nodeID, p.Nodes.ShutdownNode)
}

// takePower lets act take the power of a node, whose checks are all bmc's, and ends connections to agents on it that a cut
// leaves open. An agent that lives all the same is dialled again.
func (p powered) takePower(ctx context.Context, nodeID string, act func(context.Context, string) error) error {
	if err := p.usable(ctx); err != nil {
		return err
	}
	lost := p.running(ctx, nodeID)
	err := act(target.WithPowerChange(ctx, func(target.PowerChange) { p.hangUpAll(lost, nodeID) }), nodeID)
	if err == nil || diag.ExitCode(err) != diag.ExitRefused { // what was refused was not begun
		p.hangUpAll(lost, nodeID)
	}
	return err
}

// hangUpAll ends the connections to agents of VMs that had been on a node, and that to the node: a host that is still there is
// reached again.
func (p powered) hangUpAll(vms []string, nodeID string) {
	for _, id := range vms {
		p.hangUp(id)
	}
	if n, err := p.node(nodeID); err == nil {
		n.tunnel.drop()
	}
}

// running lists the VMs on a node; none on one without power, which cannot be asked.
func (t *Target) running(ctx context.Context, nodeID string) []string {
	if t.withoutPower(ctx, nodeID) {
		return nil
	}
	var list []string
	if s, err := t.survey(ctx); err == nil {
		for id, one := range s.vms {
			if one.main().node.id == nodeID {
				list = append(list, id)
			}
		}
	}
	return list
}

// withoutPower tells whether a node is known to be switched off.
func (t *Target) withoutPower(ctx context.Context, nodeID string) bool {
	if t.power == nil {
		return false
	}
	state, err := t.power.NodePowerState(ctx, nodeID)
	return err == nil && state == target.PowerOff
}

// Survey tells what speaks against cutting the power of a node: see bmc.Surveyor.
func (t *Target) Survey(ctx context.Context, nodeID string) (bmc.Survey, error) {
	n, err := t.node(nodeID)
	if err != nil {
		return bmc.Survey{}, err
	}
	var s bmc.Survey
	if s.Machine, err = n.identity(ctx); err != nil {
		return s, err
	}
	domains, err := n.sights(ctx)
	if err != nil {
		return s, err
	}
	s.VMsListed = true
	for _, d := range domains {
		if d.active() && !t.ours(d.mark()) {
			s.ForeignVMs = append(s.ForeignVMs, d.Name)
		}
	}
	parts, err := n.secrets().Parts(ctx)
	if err != nil {
		return s, err
	}
	for _, h := range parts {
		s.ForeignVMs = append(s.ForeignVMs, fmt.Sprintf("agents of run %q of %s on the host itself", h.Run, h.User))
	}
	s.Controller = controllerIs(ownUUID(), s.Machine, domains)
	s.Redundant, s.Health = t.health(ctx, nodeID)
	return s, nil
}

// ours tells whether a mark belongs to the run that this target was opened for: it created VMs with it, or listed them.
func (t *Target) ours(mark string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return mark != "" && t.marks[mark]
}

// remark notes the mark of a run that uses this target.
func (t *Target) remark(tag target.Tag) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marks[tag.Mark()] = true
}

// health is what libvirt hosts have for redundancy beside the node that is to be cut: that every other host answers and has
// its storage, but for those that this program switched off. Storage that is redundant below the pool is not seen from here.
func (t *Target) health(ctx context.Context, nodeID string) (bmc.Answer, string) {
	err := target.Each(ctx, len(t.nodes), func(i int) error {
		n := t.nodes[i]
		if n.id == nodeID {
			return nil
		}
		return t.power.Answers(ctx, n.id, func(ctx context.Context) error { return t.DatastoreVisible(ctx, n.id, t.settings.pool) })
	})
	if err != nil {
		return bmc.No, "hosts or their pools are missing: " + err.Error()
	}
	return bmc.Yes, "the other hosts that were not switched off answer and have their pool; what keeps the data is not seen from here"
}

// identity is what the host says of its machine: by DMI where it can read that, else the UUID that libvirt goes by.
func (n *node) identity(ctx context.Context) (bmc.Identity, error) {
	if text, err := n.query(ctx, "sysinfo"); err == nil {
		if id := parseSysinfo(text); id.Known() {
			return id, nil
		}
	}
	host, err := n.host(ctx)
	return bmc.Identity{UUID: host.uuid}, err
}

func parseSysinfo(text []byte) bmc.Identity {
	type entries []struct {
		Name  string `xml:"name,attr"`
		Value string `xml:",chardata"`
	}
	var info struct {
		System entries `xml:"system>entry"`
		Board  entries `xml:"baseBoard>entry"`
	}
	var id bmc.Identity
	if xml.Unmarshal(text, &info) != nil {
		return id
	}
	for _, e := range slices.Concat(info.System, info.Board) {
		switch value := strings.TrimSpace(e.Value); {
		case value == "":
		case e.Name == "uuid":
			id.UUID = value
		case e.Name == "serial":
			id.Serials = append(id.Serials, value)
		}
	}
	return id
}

// controllerIs tells whether this program runs on a node: on the machine itself, or in one of its VMs. machine is the
// UUID of the machine that this program is on.
func controllerIs(machine string, host bmc.Identity, domains []sight) bmc.Answer {
	own := bmc.Identity{UUID: machine}
	if !own.Known() || !host.Known() {
		return bmc.Unknown
	}
	if match, _ := own.Compare(host); match != bmc.Differs {
		if match == bmc.Same {
			return bmc.Yes
		}
		return bmc.Unknown
	}
	for _, d := range domains {
		if match, _ := own.Compare(bmc.Identity{UUID: d.UUID}); match == bmc.Same {
			return bmc.Yes
		}
	}
	return bmc.No
}

// ownUUID is the UUID by which libvirt would know this machine, which in a VM of libvirt is that of its domain: by DMI,
// which only root may read, or on a machine without DMI its machine-id. It is empty where it cannot be read.
func ownUUID() string {
	text, err := os.ReadFile("/sys/class/dmi/id/product_uuid")
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile("/etc/machine-id")
	}
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
