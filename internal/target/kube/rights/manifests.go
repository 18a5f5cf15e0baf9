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
	// Image is a container image with bragg, for a Job that runs Scenario; "": no Job.
	Image, Scenario string
	// AgentImage and Class are those of the target file of the Job.
	AgentImage, Class string
}

const nameMax = 63

var (
	dnsLabel  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}$`)
	plainWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)
)

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
	for flag, value := range map[string]string{"job image": i.Image, "agent image": i.AgentImage} {
		if value != "" && !imageName.MatchString(value) {
			bad(flag, value, "the name of a container image")
		}
	}
	for flag, value := range map[string]string{"scenario": i.Scenario, "storage class": i.Class} {
		if value != "" && !plainWord.MatchString(value) {
			bad(flag, value, "a name")
		}
	}
	if i.Image != "" && (i.Scenario == "" || i.AgentImage == "") {
		wrong = append(wrong, "a Job needs a scenario and an agent image")
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
	if i.Image != "" {
		documents = append(documents, i.job(name)...)
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

// job is a run in the cluster, with its target file and a volume for its bundle.
func (i Install) job(name string) []string {
	pool := ""
	if i.Class != "" {
		pool = "\n    pool: " + i.Class
	}
	file := fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: %[1]s-target
  namespace: %[2]s
data:
  target.yml: |
    provider: kubernetes%[4]s
    options:
      kind: %[5]s
      image: %[3]s
      agents: direct
`, name, i.Namespace, i.AgentImage, pool, orPod(i.Kind))
	claim := fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: %[1]s-runs
  namespace: %[2]s
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: 10Gi
`, name, i.Namespace)
	run := fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %[1]s-run
  namespace: %[2]s
spec:
  backoffLimit: 0
  template:
    spec:
      serviceAccountName: %[1]s
      restartPolicy: Never
      securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: bragg
          image: %[3]s
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          command: [bragg, run, %[4]s, --target, /etc/bragg/target.yml, --runs, /runs]
          volumeMounts:
            - {name: target, mountPath: /etc/bragg, readOnly: true}
            - {name: runs, mountPath: /runs}
      volumes:
        - name: target
          configMap: {name: %[1]s-target}
        - name: runs
          persistentVolumeClaim: {claimName: %[1]s-runs}
`, name, i.Namespace, i.Image, i.Scenario)
	return []string{file, claim, run}
}

func orPod(kind string) string {
	if kind == "" {
		return KindPod
	}
	return kind
}
