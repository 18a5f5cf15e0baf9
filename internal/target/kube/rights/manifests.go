package rights

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// Install says what to print.
type Install struct {
	Namespace string
	Account   string // of the service account; "": bragg
	Kind      string // of VMs, one of Kinds
	// Nodes adds a ClusterRole that lists nodes and storage classes; Drain adds what maintenance of nodes needs, Metrics what
	// metrics of nodes and VMs need.
	Nodes, Drain, Metrics bool
	Job                   *Job // nil: none
}

const nameMax = 63

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// Check reports every value that cannot be in a manifest.
func (i Install) Check() error {
	var wrong []string
	bad := func(flag, value, want string) {
		wrong = append(wrong, fmt.Sprintf("%s %q: want %s", flag, value, want))
	}
	for flag, value := range map[string]string{"namespace": i.Namespace, "account": i.account()} {
		if len(value) > nameMax || !dnsLabel.MatchString(value) {
			bad(flag, value, "at most 63 lower-case letters, digits and dashes")
		}
	}
	if i.Job != nil {
		wrong = append(wrong, i.Job.faults()...)
	}
	if len(wrong) == 0 {
		return nil
	}
	return &diag.Error{Code: "usage", Exit: diag.ExitUsage, Message: strings.Join(wrong, "; ")}
}

func (i Install) account() string {
	if i.Account == "" {
		return "bragg"
	}
	return i.Account
}

// Manifests are the objects that let a service account run scenarios, as YAML for kubectl apply.
func (i Install) Manifests() (string, error) {
	if err := i.Check(); err != nil {
		return "", err
	}
	name := i.account()
	rights := Of(i.Kind)
	if i.Metrics {
		rights = append(rights, Metrics()...)
	}
	documents := []string{
		fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n", i.Namespace),
		fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: %s\n  namespace: %s\n", name, i.Namespace),
		role("Role", name, i.Namespace, within(rights, false)),
		binding("Role", name, name, i.Namespace),
	}
	everywhere := within(rights, true)
	if i.Drain {
		everywhere = append(everywhere, Maintenance()...)
	}
	if i.Nodes || i.Drain || i.Metrics {
		cluster := i.Namespace + "-" + name
		documents = append(documents, role("ClusterRole", cluster, "", everywhere), binding("ClusterRole", cluster, name, i.Namespace))
	}
	if i.Job != nil {
		documents = append(documents, i.Job.manifests(i, name)...)
	}
	return strings.Join(documents, "---\n"), nil
}

func within(all []Right, everywhere bool) []Right {
	var list []Right
	for _, r := range all {
		if r.Cluster == everywhere {
			list = append(list, r)
		}
	}
	return list
}

func role(kind, name, namespace string, rights []Right) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s\n", kind, name)
	if namespace != "" {
		fmt.Fprintf(&b, "  namespace: %s\n", namespace)
	}
	b.WriteString("rules:\n")
	for _, r := range rights {
		if r.Without != "" {
			fmt.Fprintf(&b, "  # optional: without it, %s\n", r.Without)
		}
		fmt.Fprintf(&b, "  - apiGroups: [%q]\n    resources: [%q]\n    verbs: [%s]\n", r.Group, r.Resource, strings.Join(r.Verbs, ", "))
	}
	return b.String()
}

func binding(kind, name, account, namespace string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: %sBinding\nmetadata:\n  name: %s\n", kind, name)
	if kind == "Role" {
		fmt.Fprintf(&b, "  namespace: %s\n", namespace)
	}
	fmt.Fprintf(&b, "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: %s\n  name: %s\n", kind, name)
	fmt.Fprintf(&b, "subjects:\n  - kind: ServiceAccount\n    name: %s\n    namespace: %s\n", account, namespace)
	return b.String()
}

func orPod(kind string) string {
	if kind == "" {
		return KindPod
	}
	return kind
}
