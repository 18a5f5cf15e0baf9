package rights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
)

var (
	rulesReviews  = review("selfsubjectrulesreviews", "SelfSubjectRulesReview")
	accessReviews = review("selfsubjectaccessreviews", "SelfSubjectAccessReview")
)

func review(resource, kind string) api.Resource {
	return api.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: resource}, Kind: kind, Cluster: true,
	}
}

// Lacks are the rights that the user does not have.
type Lacks []Right

// Has reports whether nothing of that resource is missing.
func (l Lacks) Has(resource string) bool {
	return !slices.ContainsFunc(l, func(r Right) bool { return r.Resource == resource })
}

// Err lists everything that is missing and needed; nil: the rest only makes less possible.
func (l Lacks) Err(namespace string) error {
	var needed []string
	for _, r := range l {
		if r.Without == "" {
			needed = append(needed, r.String())
		}
	}
	if len(needed) == 0 {
		return nil
	}
	return &diag.Error{
		Code: api.CodeForbidden, Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("namespace %q: the user lacks these rights: %s", namespace, strings.Join(needed, "; ")),
		Hint:    "bragg kube install prints a Role that grants them",
	}
}

// Facts say what is not possible without the rights that are missing and not needed.
func (l Lacks) Facts() []target.Fact {
	var facts []target.Fact
	for _, r := range l {
		if r.Without != "" {
			facts = append(facts, target.Fact{Name: "right to " + r.String(), Value: "missing: " + r.Without})
		}
	}
	return facts
}

// Check returns the rights of the list that the user lacks. It reads the rules of the namespace in one call; what those do not
// grant is checked by itself, because some authorizers do not list their rules.
func Check(ctx context.Context, c *api.Client, list []Right) (Lacks, error) {
	rules, err := api.Create[authorization.SelfSubjectRulesReview](ctx, c, rulesReviews, &authorization.SelfSubjectRulesReview{
		Spec: authorization.SelfSubjectRulesReviewSpec{Namespace: c.Namespace},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("check the rights of the user: %w", err)
	}
	var lacks Lacks
	for _, r := range list {
		missing := r
		missing.Verbs = nil
		for _, verb := range r.Verbs {
			// Rules of the namespace may name objects that are in none, which they do not grant.
			if !r.Cluster && granted(rules.Status.ResourceRules, r, verb) {
				continue
			}
			allowed, err := may(ctx, c, r, verb)
			if err != nil {
				return nil, fmt.Errorf("check the rights of the user: %w", err)
			}
			if !allowed {
				missing.Verbs = append(missing.Verbs, verb)
			}
		}
		if len(missing.Verbs) > 0 {
			lacks = append(lacks, missing)
		}
	}
	return lacks, nil
}

func granted(rules []authorization.ResourceRule, r Right, verb string) bool {
	return slices.ContainsFunc(rules, func(rule authorization.ResourceRule) bool {
		return len(rule.ResourceNames) == 0 && names(rule.Verbs, verb) && names(rule.APIGroups, r.Group) && names(rule.Resources, r.Resource)
	})
}

func names(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

func may(ctx context.Context, c *api.Client, r Right, verb string) (bool, error) {
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	namespace := c.Namespace
	if r.Cluster {
		namespace = ""
	}
	answer, err := api.Create[authorization.SelfSubjectAccessReview](ctx, c, accessReviews, &authorization.SelfSubjectAccessReview{
		Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorization.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: r.Group, Resource: resource, Subresource: subresource,
		}},
	}, nil)
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
