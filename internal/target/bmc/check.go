package bmc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// Reading is the result of reading one BMC without changing anything.
type Reading struct {
	NodeID   string            `json:"node_id"`
	Node     string            `json:"node"` // its name
	Protocol string            `json:"protocol"`
	Address  string            `json:"address"`
	Power    target.PowerState `json:"power"`
	Identity Identity          `json:"identity"`
	// Matches names what proves the identity in the target file ("UUID", "serial"); "" if nothing does.
	Matches string `json:"matches,omitempty"`
}

// Check reads state and identity of every BMC of a target file, changes nothing, and reports faults at their places.
func Check(ctx context.Context, c target.Config) ([]Reading, diag.List) {
	var nodes []target.NodeConfig
	for _, n := range c.Nodes {
		if n.BMC != nil {
			nodes = append(nodes, n)
		}
	}
	readings := make([]Reading, len(nodes))
	errs := make([]error, len(nodes))
	var wait sync.WaitGroup
	turns := make(chan struct{}, checksAtOnceMax)
	for i, n := range nodes {
		wait.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			readings[i], errs[i] = read(ctx, c, n)
		})
	}
	wait.Wait()
	var list diag.List
	for i, n := range nodes {
		if errs[i] != nil {
			list.Add(place(n, errs[i]))
			continue
		}
		compare(n, &readings[i], &list)
	}
	twice(nodes, readings, &list)
	return readings, list
}

// Away reports whether a code means that a BMC is unavailable now, rather than that the target file is wrong.
func Away(code string) bool {
	switch code {
	case CodeCredential, CodeUnreachable, CodeLogin, CodeForbidden, CodeCertificate, CodeProgram, CodeGarbage, CodeRefused, CodeLacks:
		return true
	}
	return false
}

// checksAtOnceMax bounds how many BMCs are read concurrently.
const checksAtOnceMax = 32

func read(ctx context.Context, c target.Config, n target.NodeConfig) (Reading, error) {
	r := Reading{NodeID: n.ID, Node: nodeName(n), Protocol: n.BMC.Protocol, Address: n.BMC.Address, Power: target.PowerUnknown}
	s, err := Open(ctx, r.Node, c, *n.BMC)
	if err != nil {
		return r, err
	}
	if r.Power, err = s.State(ctx); err != nil {
		return r, err
	}
	r.Identity, err = s.Identity(ctx)
	return r, err
}

// compare compares the identity that a BMC reports with the one in the target file.
func compare(n target.NodeConfig, r *Reading, list *diag.List) {
	said := declared(n)
	match, by := r.Identity.Compare(said)
	switch {
	case match == Same:
		r.Matches = by
	case match == Differs:
		list.Add(place(n, &diag.Error{
			Code:    CodeIdentity,
			Message: fmt.Sprintf("the BMC of node %q belongs to another machine: it says %s and the file says %s", r.Node, r.Identity.shown(), said.shown()),
			Hint:    "correct its address, or the serial and uuid of the node",
		}))
	case !r.Identity.Known():
		warn(list, n, CodeIdentity, fmt.Sprintf("the BMC of node %q does not identify its machine (%s), so its power will not be cut", r.Node,
			r.Identity.shown()), "enter serial number or UUID in the BMC or the firmware; or override the check, see the guide")
	}
	if r.Power == target.PowerUnknown {
		warn(list, n, CodeGarbage, fmt.Sprintf("the BMC of node %q says neither on nor off", r.Node), "")
	}
	if text := exposure(*n.BMC); text != "" {
		warn(list, n, CodeCertificate, fmt.Sprintf("the connection to the BMC of node %q is %s", r.Node, text), "pin its certificate with fingerprint")
	}
}

// twice reports BMCs that two nodes share: a cut would hit the wrong machine.
func twice(nodes []target.NodeConfig, readings []Reading, list *diag.List) {
	for i, n := range nodes {
		for k, other := range nodes[:i] {
			sameAddress := n.BMC.Address == other.BMC.Address && n.BMC.System == other.BMC.System && n.BMC.Protocol == other.BMC.Protocol
			match, _ := readings[i].Identity.Compare(readings[k].Identity)
			if sameAddress || match == Same {
				list.Add(place(n, &diag.Error{
					Code: CodeTwice, Message: fmt.Sprintf("nodes %q and %q have the same BMC, or BMCs that report the same identity", nodeName(other), nodeName(n)),
					Hint: "each node needs its own address, or its own system",
				}))
				break
			}
		}
	}
}

// place turns an error into a diagnostic at the BMC in the target file.
func place(n target.NodeConfig, err error) diag.Diagnostic {
	d := diag.Diagnostic{Code: CodeUnreachable, Message: err.Error(), Pos: n.BMC.Pos, Source: n.BMC.Source, Width: len("bmc")}
	var userErr *diag.Error
	if errors.As(err, &userErr) {
		d.Code, d.Hint = userErr.Code, userErr.Hint
	}
	if d.Source == "" {
		d.Width = 0
	}
	return d
}

func warn(list *diag.List, n target.NodeConfig, code, message, hint string) {
	d := place(n, &diag.Error{Code: code, Message: message, Hint: hint})
	d.Severity = diag.SeverityWarning
	list.Add(d)
}
