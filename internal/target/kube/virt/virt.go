// Package virt runs VMs of KubeVirt: what differs from pods behind the same records, claims and snapshots.
//
//	Prepare ──▶ VirtualMachine with runStrategy Manual, off                                               (manifest.go)
//	Start ──▶ Secret with the guest's identity ──▶ subresource start ──▶ VirtualMachineInstance runs       (start.go)
//	Stop ──▶ subresource stop with a grace period of 0 ──▶ no instance, and no pod of one, is left         (stop.go)
//	Migrate ──▶ VirtualMachineInstanceMigration to one node ──▶ Succeeded                                  (migrate.go)
//
// With runStrategy Manual, KubeVirt changes the power of a VM only when this program requests it: a VM that crashes, or whose node
// fails, stays off, and a cut of power is not undone by a controller. An instance that exists and has not ended is a VM with power.
//
// The package uses no Go module of KubeVirt: types.go has the fields that it writes and reads, and the server refuses unknown ones.
package virt

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/keys"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/login"
	"github.com/braggdev/bragg/internal/trust"
)

// Site is what a Runner knows about its cluster. All functions may be called concurrently.
type Site struct {
	Client *api.Client
	Boot   func(template string) Boot
	// Off reports whether a node is known to be switched off, Dead whether no kubelet answers there.
	Off, Dead func(ctx context.Context, node string) bool
	// Events are the cluster's words about an object, "" without any.
	Events func(ctx context.Context, uid string) string
}

// Limits are how long KubeVirt may take.
type Limits struct {
	Start         time.Duration // until the guest runs
	Unschedulable time.Duration // how long the scheduler may find no node
	Image         time.Duration // how long pulling an image may fail
	Stop          time.Duration
	Look          time.Duration // how often the time is compared with these
}

// Runner gives VMs power. Its methods may be called concurrently for several VMs.
type Runner struct {
	*watched
	*seeds
	site   Site
	plans  *blueprints
	limits Limits
}

// New makes a Runner. It makes no calls.
func New(site Site, s Settings, o object.Settings, l Limits, authority *trust.Authority) *Runner {
	return &Runner{
		watched: newWatched(site), seeds: &seeds{s, authority, keys.NewKeeper(site.Client), login.NewKeyring()},
		site: site, plans: &blueprints{site, s, o}, limits: l,
	}
}

// Installed returns an error if the cluster has no KubeVirt.
func Installed(ctx context.Context, c *api.Client) error {
	_, err := c.Raw(ctx, http.MethodGet, "/apis/"+api.Machines.APIVersion(), nil)
	if api.NotFound(err) {
		return &diag.Error{
			Code: "kube-no-kubevirt", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("the cluster has no KubeVirt: it does not serve %s", api.Machines.APIVersion()),
			Hint: "install KubeVirt, or use kind: pod in the options of the target file",
		}
	}
	return err
}

const subresources = "/apis/subresources.kubevirt.io/v1"

// Facts are what a report must say of KubeVirt. What cannot be read is missing.
func (r *Runner) Facts(ctx context.Context) []target.Fact {
	s := r.plans.settings
	var facts []target.Fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, target.Fact{Name: name, Value: api.Words(value)})
		}
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if text, err := r.site.Client.Raw(ctx, http.MethodGet, subresources+"/version", nil); err == nil && json.Unmarshal(text, &version) == nil {
		add("KubeVirt", version.GitVersion)
	}
	defaults := r.defaults(ctx)
	add("machine type", firstOf(s.Machine, defaults.MachineType, "KubeVirt's default"))
	add("CPU model", firstOf(s.CPUModel, defaults.CPUModel, "host-model, KubeVirt's default"))
	if defaults.Developer.Emulation {
		add("emulation", "KubeVirt may emulate processors where nodes have no /dev/kvm: figures of emulated VMs are not those of the hardware")
	}
	add("eviction strategy", s.Eviction)
	add("disks", fmt.Sprintf("bus %s, cache %s", s.Bus, s.Cache))
	add("network binding", s.Binding)
	return facts
}

// defaults reads the configuration of KubeVirt, where the user may.
func (r *Runner) defaults(ctx context.Context) (c configuration) {
	all, err := api.Everywhere[kubeVirt](ctx, r.site.Client, api.KubeVirts, listAll)
	if err == nil && len(all) > 0 {
		c = all[0].Spec.Configuration
	}
	return c
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
