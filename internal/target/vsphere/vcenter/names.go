package vcenter

import (
	"fmt"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
)

// Remember keeps the name of an object for messages: vCenter's own have its number only.
func (c *Client) Remember(ref types.ManagedObjectReference, name string) {
	c.link.names.Store(ref, name)
}

// nouns are the words for objects in messages.
var nouns = map[string]string{
	"VirtualMachine": "VM", "HostSystem": "host", "ClusterComputeResource": "cluster", "Datastore": "datastore", "Folder": "folder",
	"ResourcePool": "resource pool", "Network": "network", "DistributedVirtualPortgroup": "network", "Datacenter": "datacenter",
}

// describe names an object: `VM "linux"`, or `VM vm-54` if its name is not known.
func (l *link) describe(ref types.ManagedObjectReference) string {
	noun := nouns[ref.Type]
	if noun == "" {
		noun = textio.Line(ref.Type)
	}
	if name, ok := l.names.Load(ref); ok {
		return fmt.Sprintf("%s %q", noun, name)
	}
	return noun + " " + textio.Line(ref.Value)
}

// vmsMax bounds the VMs that a message names.
const vmsMax = 3

// ExplainEach explains the errors of one action on several VMs, nil for those where it succeeded. VMs with the same error share one message: a role
// that lacks a privilege lacks it for all of them.
//
// ended is the error that kept the action from the others.
func (c *Client) ExplainEach(action string, vms []string, errs []error, ended error) error {
	var order []string
	alike, first := map[string][]string{}, map[string]error{}
	for i, err := range errs {
		if err == nil {
			continue
		}
		text := err.Error()
		if alike[text] == nil {
			order, first[text] = append(order, text), err
		}
		alike[text] = append(alike[text], fmt.Sprintf("%q", vms[i]))
	}
	var all Several
	if ended != nil {
		all = append(all, ended)
	}
	for _, text := range order {
		noun := "vm"
		if len(alike[text]) > 1 {
			noun = "VMs"
		}
		all = append(all, c.Explain(fmt.Sprintf("%s %s %s", action, noun, textio.Few(alike[text], vmsMax)), first[text]))
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// Several are errors on one line.
type Several []error

func (s Several) Error() string {
	var all []string
	for _, err := range s {
		all = append(all, diag.Sentence(err))
	}
	return strings.Join(all, "; ")
}

func (s Several) Unwrap() []error { return s }
