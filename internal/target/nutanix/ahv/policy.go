package ahv

import (
	"context"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// Policy is an affinity policy: VMs of its categories run on hosts of others, or apart from each other.
type Policy struct {
	Name           string `json:"name"`
	VMCategories   []Ref  `json:"vmCategories"`
	HostCategories []Ref  `json:"hostCategories"`
	Apart          []Ref  `json:"categories"` // of VMs that run on different hosts
}

// Policies lists the affinity policies of Prism Central. Older versions have none.
func (c *Cluster) Policies(ctx context.Context) ([]Policy, error) {
	var all []Policy
	for _, path := range []string{"ahv/policies/vm-host-affinity-policies", "ahv/policies/vm-anti-affinity-policies"} {
		list, err := prism.List[Policy](ctx, c.Prism, "vmm", path, nil)
		if err != nil && !prism.IsGone(err) {
			return nil, fmt.Errorf("list affinity policies: %w", err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// Concerns reports whether the policy is for VMs with these categories.
func (p Policy) Concerns(categories []Ref) bool {
	return slices.ContainsFunc(slices.Concat(p.VMCategories, p.Apart), func(r Ref) bool { return slices.Contains(categories, r) })
}

// Does says what the policy does to a VM.
func (p Policy) Does() string {
	if len(p.Apart) > 0 {
		return fmt.Sprintf("policy %q keeps it apart from other VMs", p.Name)
	}
	return fmt.Sprintf("policy %q keeps it on hosts of its categories", p.Name)
}
