package bmc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// Answer is the answer to a question about the state of nodes and VMs. The zero value means unknown, which always blocks a
// cut.
type Answer int

const (
	Unknown Answer = iota
	Yes
	No
)

// PowerCut holds all known facts about a node whose power is about to be cut.
type PowerCut struct {
	Node    string // its name
	Allowed bool   // the target file allows power operations
	// BMC is the identity that its BMC reports now, Machine the one that the node reports, Declared the one in the target
	// file. Others are the known identities of the other nodes, by name: an identity that fits two machines identifies
	// neither.
	BMC      Identity
	Machine  Identity
	Declared Identity
	Others   map[string]Identity
	SameAs   []string // other nodes, by name, that are the same machine
	// VMsListed: ForeignVMs lists all VMs that run on the node and do not belong to this run.
	VMsListed  bool
	ForeignVMs []string
	Controller Answer // runs on this node
	// NodesOff are the other nodes that are off now, or whose state is not known. NodesOffMax is how many nodes the
	// scenario declares to be off at the same time, including this one; 0: it declares none.
	NodesOff    []string
	NodesOffMax int
	// Redundant: the target has recovered from earlier failures. Health describes what the check found.
	Redundant Answer
	Health    string
}

// Objection is one reason not to cut.
type Objection struct {
	Override string // the name by which the owner can override it; "" if it cannot be overridden
	Message  string
	Hint     string
}

// Verdict is the result of CheckPowerCut.
type Verdict struct {
	Node       string
	Objections []Objection // not overridden
	Overridden []Objection
}

// Err is nil if the node may be cut, else a refusal with all objections.
func (v Verdict) Err() error {
	if len(v.Objections) == 0 {
		return nil
	}
	var messages []string
	for _, o := range v.Objections {
		messages = append(messages, o.Message)
	}
	first := v.Objections[0]
	hint := first.Hint
	if first.Override != "" {
		hint += fmt.Sprintf("; allow: {overrides: [%s]} in the target file skips this check, and reports say so", first.Override)
	}
	return &diag.Error{
		Code: CodePowerCut, Exit: diag.ExitRefused, Hint: hint,
		Message: fmt.Sprintf("cut the power of node %q: refused because %s", v.Node, strings.Join(messages, "; ")),
	}
}

// Facts lists for a report the overridden objections.
func (v Verdict) Facts() []target.Fact {
	var facts []target.Fact
	for _, o := range v.Overridden {
		facts = append(facts, target.Fact{Name: "override " + o.Override, Value: fmt.Sprintf("node %q was cut although %s", v.Node, o.Message)})
	}
	return facts
}

// CheckPowerCut decides from the given facts alone whether a node may be cut. overrides are names of target.Overrides that
// the owner of the target wrote into its file.
func CheckPowerCut(c PowerCut, overrides []string) Verdict {
	v := Verdict{Node: c.Node}
	for _, check := range []func(PowerCut) *Objection{checkAllowed, checkIdentity, checkUnique, checkSame, checkForeign, checkController, checkCount, checkRedundancy} {
		o := check(c)
		switch {
		case o == nil:
		case o.Override != "" && slices.Contains(overrides, o.Override):
			v.Overridden = append(v.Overridden, *o)
		default:
			v.Objections = append(v.Objections, *o)
		}
	}
	return v
}

func checkAllowed(c PowerCut) *Objection {
	if c.Allowed {
		return nil
	}
	return &Objection{Message: "the target file does not allow power operations", Hint: "allow them with allow: {node_power: true}"}
}

// checkIdentity requires that the BMC belongs to the node. A wrong BMC cuts the power of an unrelated machine, so a known
// mismatch cannot be overridden; only missing proof can.
func checkIdentity(c PowerCut) *Objection {
	proven := false
	for _, known := range []struct {
		who string
		id  Identity
	}{{"the node", c.Machine}, {"the target file", c.Declared}} {
		match, by := c.BMC.Compare(known.id)
		if match == Differs {
			return &Objection{
				Message: fmt.Sprintf("its BMC belongs to another machine: by its %s, the BMC says %s and %s says %s", by, c.BMC.shown(),
					known.who, known.id.shown()),
				Hint: "correct the address of the BMC in the target file; bragg targets check shows what each BMC says",
			}
		}
		proven = proven || match == Same
	}
	if proven {
		return nil
	}
	return &Objection{
		Override: target.OverrideIdentity,
		Message: fmt.Sprintf("nothing proves that the BMC belongs to it: the BMC says %s, the node %s and the target file %s", c.BMC.shown(),
			c.Machine.shown(), c.Declared.shown()),
		Hint: "write the node's own serial or uuid into the target file: dmidecode -s system-uuid prints it on the node",
	}
}

// checkSame refuses one BMC for several nodes: a cut would also take down the workloads of the others, without any record of
// the cause.
func checkSame(c PowerCut) *Objection {
	if len(c.SameAs) == 0 {
		return nil
	}
	return &Objection{
		Override: target.OverrideIdentity,
		Message:  fmt.Sprintf("it is the same machine as node %q", strings.Join(c.SameAs, ", ")),
		Hint:     "name each machine once in the target file",
	}
}

func checkUnique(c PowerCut) *Objection {
	for _, name := range slices.Sorted(maps.Keys(c.Others)) {
		if match, by := c.BMC.Compare(c.Others[name]); match == Same {
			return &Objection{
				Message: fmt.Sprintf("its BMC's identity matches node %q too (%s)", name, by),
				Hint:    "two nodes have the same serial number or UUID: correct the firmware's, or the target file",
			}
		}
	}
	return nil
}

func checkForeign(c PowerCut) *Objection {
	o := &Objection{Override: target.OverrideForeignVMs, Hint: "move them to another node"}
	switch {
	case !c.VMsListed:
		o.Message, o.Hint = "it is not known which VMs run on it", "the provider must be able to list them"
	case len(c.ForeignVMs) > 0:
		const shownMax = 5
		shown := c.ForeignVMs[:min(len(c.ForeignVMs), shownMax)]
		o.Message = fmt.Sprintf("%d foreign VMs run on it: %s", len(c.ForeignVMs), quoteOutside(strings.Join(shown, ", ")))
		if len(c.ForeignVMs) == 1 {
			o.Message = "a foreign VM runs on it: " + quoteOutside(c.ForeignVMs[0])
		}
		if len(c.ForeignVMs) > shownMax {
			o.Message += ", …"
		}
	default:
		return nil
	}
	return o
}

func checkController(c PowerCut) *Objection {
	o := &Objection{Override: target.OverrideController, Hint: "run bragg on a machine outside of the target"}
	switch c.Controller {
	case No:
		return nil
	case Yes:
		o.Message = "this program runs on it"
	default:
		o.Message = "it is not known whether this program runs on it"
	}
	return o
}

func checkCount(c PowerCut) *Objection {
	off := len(c.NodesOff) + 1
	if off <= c.NodesOffMax {
		return nil
	}
	o := &Objection{
		Message: fmt.Sprintf("it would make %d off at once and the scenario has at most %d", off, c.NodesOffMax),
		Hint:    "the steps of the scenario say how many nodes they switch off",
	}
	if len(c.NodesOff) > 0 {
		o.Message += " (off, or not known to be on: " + quoteOutside(strings.Join(c.NodesOff, ", ")) + ")"
		o.Hint = "power them on first: bragg clean does it for what our runs switched off"
	}
	return o
}

func checkRedundancy(c PowerCut) *Objection {
	o := &Objection{Override: target.OverrideRedundancy, Hint: "wait until the target has recovered"}
	switch c.Redundant {
	case Yes:
		return nil
	case No:
		o.Message = "the target has not recovered its redundancy"
	default:
		o.Message, o.Hint = "it is not known whether the target has its redundancy", "name a check in the target file: health: {command: [PROGRAM, ARGUMENT]}"
	}
	if c.Health != "" {
		o.Message += ": " + quoteOutside(c.Health)
	}
	return o
}
