package nutanix

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
)

// VMs have the categories of the target file, by which affinity policies of administrators concern them. Bragg makes no policies: where one
// moves a VM, or refuses the node that a scenario wants, it is named.

// category is one "Key:Value" of the option.
type category struct{ key, value string }

// readCategories reads the option "categories".
func readCategories(text string) (list []category, err error) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		key, value, ok := strings.Cut(one, ":")
		if !ok || key == "" || value == "" {
			return nil, fmt.Errorf("option categories has %q, want KEY:VALUE, separated by commas", one)
		}
		list = append(list, category{key, value})
	}
	return list, nil
}

// categories finds those of the target file.
func (c *cluster) categories(ctx context.Context) ([]ahv.Ref, error) {
	var refs []ahv.Ref
	for _, one := range c.settings.categories {
		found, err := ahv.Categories{Prism: c.client}.Find(ctx, one.key, one.value)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, &diag.Error{
				Code: "nutanix-category", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("find category %q: Prism Central has no such value", one.key+":"+one.value),
				Hint: "make it in Prism Central, or correct \"categories\" in the options of the target file",
			}
		}
		refs = append(refs, ahv.Ref{ExtID: found[0].ExtID})
	}
	return refs, nil
}

// affinityFacts describe the policies that concern VMs of runs.
func (c *cluster) affinityFacts(ctx context.Context) ([]target.Fact, error) {
	refs, err := c.categories(ctx)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	policies, err := c.ahv.Policies(ctx)
	if err != nil {
		return nil, err
	}
	facts := []target.Fact{}
	for _, p := range policies {
		if p.Concerns(refs) {
			facts = append(facts, target.Fact{Name: "affinity of VMs", Value: p.Does()})
		}
	}
	return facts, nil
}

// concerning says which policies concern a VM, to be added to a sentence; "": none, or Prism does not say.
func (c *cluster) concerning(ctx context.Context, categories []ahv.Ref) string {
	if len(categories) == 0 {
		return ""
	}
	policies, err := c.ahv.Policies(ctx)
	if err != nil {
		return ""
	}
	policies = slices.DeleteFunc(policies, func(p ahv.Policy) bool { return !p.Concerns(categories) })
	var does []string
	for _, p := range policies {
		does = append(does, p.Does())
	}
	if len(does) == 0 {
		return ""
	}
	return " (" + strings.Join(does, "; ") + ")"
}
