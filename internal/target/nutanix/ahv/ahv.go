// Package ahv makes the requests of Prism's API v4 for one AHV cluster: its hosts, storage containers, subnets and images, and VMs
// with their recovery points. It knows nothing of runs and owners: package nutanix decides what may be changed.
//
//	Find ──▶ Cluster ──▶ Hosts, Containers, Subnets, Images
//	                ──▶ VMs ──▶ Create, Clone, PowerOn, PowerOff, Migrate, Describe, Delete; Recovery points, Revert
package ahv

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
	"github.com/braggdev/bragg/internal/textio"
)

// Cluster is one AHV cluster of a Prism Central.
type Cluster struct {
	Prism *prism.Client
	ID    string
	Name  string
	// Sampling is the interval of statistics; 0: the shortest for which Prism has any.
	Sampling time.Duration
}

// Ref refers to another object.
type Ref struct {
	ExtID string `json:"extId"`
}

// Address is an IP address as Prism writes it.
type Address struct {
	IPv4 struct {
		Value string `json:"value"`
	} `json:"ipv4"`
}

// State is what Prism says of a cluster.
type State struct {
	ExtID  string `json:"extId"`
	Name   string `json:"name"`
	Config struct {
		Functions   []string `json:"clusterFunction"`
		Hypervisors []string `json:"hypervisorTypes"`
		Available   *bool    `json:"isAvailable"`
		Redundancy  int      `json:"redundancyFactor"`
		Mode        string   `json:"operationMode"`
		Build       struct {
			Version string `json:"version"`
		} `json:"buildInfo"`
		Tolerance struct {
			Max     *int   `json:"currentMaxFaultTolerance"`
			Desired *int   `json:"desiredMaxFaultTolerance"`
			Current string `json:"currentClusterFaultTolerance"`
		} `json:"faultToleranceState"`
	} `json:"config"`
}

// Clusters lists the AHV clusters that a Prism manages, in the order of their names.
func Clusters(ctx context.Context, p *prism.Client) ([]State, error) {
	all, err := prism.List[State](ctx, p, "clustermgmt", "config/clusters", nil)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s State) bool { return slices.Contains(s.Config.Functions, "PRISM_CENTRAL") })
	slices.SortFunc(all, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Find finds a cluster by its name or id; "": the only one.
func Find(ctx context.Context, p *prism.Client, name string) (*Cluster, error) {
	all, err := Clusters(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	s, err := pick(all, choice[State]{
		kind: "cluster", name: name, id: func(s State) string { return s.ExtID }, called: func(s State) string { return s.Name },
		hint: "write its name or id as \"cluster\" into the options of the target file",
	})
	if err != nil {
		return nil, err
	}
	return &Cluster{Prism: p, ID: s.ExtID, Name: s.Name}, nil
}

// State reads the cluster.
func (c *Cluster) State(ctx context.Context) (s State, err error) {
	_, err = c.Prism.Get(ctx, "clustermgmt", "config/clusters/"+url.PathEscape(c.ID), nil, &s)
	return s, err
}

// choice is how one object of several is picked.
type choice[T any] struct {
	kind, name string
	id, called func(T) string
	hint       string
}

const shownMax = 8

// pick finds an object by its id or its name, which must be the only one. An empty name means the only object.
func pick[T any](all []T, c choice[T]) (one T, err error) {
	var found []T
	var names []string
	for _, o := range all {
		names = append(names, c.called(o))
		switch {
		case c.name != "" && c.id(o) == c.name:
			return o, nil
		case c.name == "" || c.called(o) == c.name:
			found = append(found, o)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	e := &diag.Error{Code: "nutanix-" + strings.ReplaceAll(c.kind, " ", "-"), Exit: diag.ExitUnavailable, Hint: c.hint}
	switch have := textio.Few(names, shownMax); {
	case len(all) == 0:
		e.Message = fmt.Sprintf("find %s %q: there is none", c.kind, c.name)
	case c.name == "":
		e.Message = fmt.Sprintf("pick a %s: there are %d (%s)", c.kind, len(all), have)
	case len(found) > 1:
		e.Message = fmt.Sprintf("find %s %q: %d have that name", c.kind, c.name, len(found))
		e.Hint = "write its id in place of its name"
	default:
		e.Message = fmt.Sprintf("find %s %q: Prism has %s", c.kind, c.name, have)
		if near := diag.Nearest(c.name, names); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
	}
	return one, e
}

// action is the request of an action on an object.
func action(name string, body any) prism.Request {
	return prism.Request{Method: http.MethodPost, Path: "/$actions/" + name, Body: body}
}
