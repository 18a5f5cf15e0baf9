package kubelab

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runWith runs a program with text on its standard input. Errors have what it said.
func runWith(cmd *exec.Cmd, stdin string) error {
	cmd.Env = environment()
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args[1:], " "), err, bytes.TrimSpace(text))
	}
	return nil
}

// firstToken reads the token of the admin.
func firstToken(path string) (string, error) {
	text, err := os.ReadFile(path)
	token, _, _ := strings.Cut(string(text), ",")
	return token, err
}

// TryKubectl runs kubectl with all rights and returns what it printed.
func (c *Cluster) TryKubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	args = append([]string{"kubectl", "--kubeconfig=" + c.Kubeconfig(), "--cache-dir=" + filepath.Join(c.Dir, "kubectl")}, args...)
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Env = environment()
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(args[3:], " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out.String(), nil
}

// Kubectl runs kubectl with all rights and returns what it printed. The test fails where kubectl does.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.TryKubectl(context.Background(), "", args...) // also in Cleanup
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Apply applies manifests, in YAML or JSON.
func (c *Cluster) Apply(t testing.TB, manifests string) {
	t.Helper()
	if _, err := c.TryKubectl(t.Context(), manifests, "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// Namespace makes a namespace of the test and returns its name. Its removal, with all that it holds, begins after the test.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	name := "t-" + strings.ToLower(rand.Text()[:10])
	c.Kubectl(t, "create", "namespace", name)
	// Pods need a ServiceAccount, which a controller makes.
	c.Kubectl(t, "wait", "--for=create", "--timeout=150s", "-n", name, "serviceaccount/default")
	t.Cleanup(func() {
		if t.Failed() {
			events, _ := c.TryKubectl(context.Background(), "", "get", "events,pods,pvc", "-n", name, "-o", "wide")
			t.Log(events)
		}
		// Without this, pods that ignore SIGTERM take their 30 seconds.
		_, err := c.TryKubectl(context.Background(), "", "delete", "pods", "--all", "-n", name, "--grace-period=1", "--wait=false")
		if err == nil {
			_, err = c.TryKubectl(context.Background(), "", "delete", "namespace", name, "--wait=false")
		}
		if err != nil {
			t.Error(err)
		}
	})
	return name
}

// Rule gives verbs on resources of one API group, "" for the core group.
type Rule struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
}

// Account makes a ServiceAccount with a Role of these rules in a namespace, or with what was bound to it before, and returns the path of
// a kubeconfig of it. Its requests are listed by Requests with the name "system:serviceaccount:NAMESPACE:NAME".
func (c *Cluster) Account(t testing.TB, namespace, name string, rules ...Rule) (kubeconfigPath string) {
	t.Helper()
	c.account(t, namespace, name, "Role", rules)
	return c.tokenFile(t, namespace, name)
}

// ClusterRules gives a ServiceAccount a ClusterRole of these rules, until the end of the test.
func (c *Cluster) ClusterRules(t testing.TB, namespace, name string, rules ...Rule) {
	t.Helper()
	c.account(t, namespace, name, "ClusterRole", rules)
	t.Cleanup(func() {
		role := namespace + "-" + name
		_, err := c.TryKubectl(context.Background(), "", "delete", "clusterrole/"+role, "clusterrolebinding/"+role)
		if err != nil {
			t.Error(err)
		}
	})
}

func (c *Cluster) account(t testing.TB, namespace, name, kind string, rules []Rule) {
	t.Helper()
	const rbac = "rbac.authorization.k8s.io"
	meta := func(name string) map[string]any {
		m := map[string]any{"name": name}
		if kind == "Role" {
			m["namespace"] = namespace
		}
		return m
	}
	items := []any{map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name, "namespace": namespace}}}
	if len(rules) > 0 {
		role := name
		if kind != "Role" {
			role = namespace + "-" + name
		}
		items = append(items,
			map[string]any{"apiVersion": rbac + "/v1", "kind": kind, "metadata": meta(role), "rules": rules},
			map[string]any{
				"apiVersion": rbac + "/v1", "kind": kind + "Binding", "metadata": meta(role),
				"roleRef":  map[string]any{"apiGroup": rbac, "kind": kind, "name": role},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": name, "namespace": namespace}},
			})
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	c.Apply(t, string(text))
}

// tokenFile writes a kubeconfig of a ServiceAccount.
func (c *Cluster) tokenFile(t testing.TB, namespace, name string) string {
	t.Helper()
	token := strings.TrimSpace(c.Kubectl(t, "create", "token", name, "-n", namespace, "--duration=12h"))
	authority, err := os.ReadFile(filepath.Join(c.Dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig(c.Server, authority, token, namespace)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// CA returns the certificate of the API server's authority, base64 of PEM, as kubeconfigs have it.
func (c *Cluster) CA(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(text)
}

// auditFile is the API server's log of requests.
const auditFile = "requests.audit"

// Request is a request that the API server answered.
type Request struct {
	User      string
	Verb      string // get, list, watch, create, …
	Resource  string // pods, pods/eviction, …
	Namespace string
	Name      string
	Code      int
	Agent     string // of the client
}

// Requests returns the requests of one user so far: "admin", or a ServiceAccount's full name. A watch is in it when it begins and
// again when it ends, with Code 200 both times.
func (c *Cluster) Requests(t testing.TB, user string) []Request {
	t.Helper()
	f, err := os.Open(filepath.Join(c.Dir, auditFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := readAudit(bufio.NewReader(f), user)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func readAudit(r *bufio.Reader, user string) (all []Request, err error) {
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return all, nil //nolint:nilerr // the last line may be half written
		}
		var e struct {
			Stage     string
			Verb      string
			UserAgent string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Subresource, Namespace, Name string }
			Response  struct{ Code int } `json:"responseStatus"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, errors.Join(fmt.Errorf("audit log: %w", err))
		}
		if e.User.Username != user {
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		all = append(all, Request{e.User.Username, e.Verb, resource, e.ObjectRef.Namespace, e.ObjectRef.Name, e.Response.Code, e.UserAgent})
	}
}
