package kubelab_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/trust"
)

// A pod with the agent's image runs on each node, and the agent answers this process at the pod's address with mutual TLS.
func TestAgentInPod(t *testing.T) {
	t.Parallel()
	c := kubelab.Shared(t)
	ns, image := c.Namespace(t), c.AgentImage(t)
	authority, err := trust.New("run", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes[:2] {
		files, err := authority.Agent(n.Name)
		if err != nil {
			t.Fatal(err)
		}
		config, err := json.Marshal(map[string]any{"vm": n.Name, "listen": ":7070", "tls": map[string]string{
			"certificate": "/identity/crt", "key": "/identity/key", "authority": "/identity/ca",
		}})
		if err != nil {
			t.Fatal(err)
		}
		b64 := base64.StdEncoding.EncodeToString
		c.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %[1]s, namespace: %[2]s}
data: {crt: %[3]s, key: %[4]s, ca: %[5]s, config: %[6]s}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  nodeSelector: {kubernetes.io/hostname: %[1]s}
  containers:
  - name: agent
    image: %[7]s
    args: [/identity/config]
    securityContext: {runAsNonRoot: true, runAsUser: 1000, allowPrivilegeEscalation: false}
    volumeMounts: [{name: identity, mountPath: /identity}]
  volumes: [{name: identity, secret: {secretName: %[1]s}}]
`, n.Name, ns, b64(files.Certificate), b64(files.Key), b64(files.Authority), b64(config), image))
	}
	for _, n := range c.Nodes[:2] {
		c.Kubectl(t, "wait", "-n", ns, "pod/"+n.Name, "--for=condition=Ready", "--timeout=150s")
		address := c.Kubectl(t, "get", "-n", ns, "pod/"+n.Name, "-o", "jsonpath={.status.podIP}")
		conn := dial(t, net.JoinHostPort(address, "7070"))
		if err := tls.Client(conn, authority.Controller(n.Name)).HandshakeContext(t.Context()); err != nil {
			t.Errorf("the agent on %s: %v", n.Name, err)
		}
	}
}

// dial connects to a server that may not listen yet.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	for {
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		if !strings.Contains(err.Error(), "refused") {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Pods talk to each other across nodes, and to the API server as the service "kubernetes".
func TestPodNetwork(t *testing.T) {
	t.Parallel()
	c := kubelab.Shared(t)
	ns := c.Namespace(t)
	for _, n := range c.Nodes[:2] {
		pod(t, c, ns, n.Name, n.Name, "")
	}
	address := c.Kubectl(t, "get", "-n", ns, "pod/"+c.Nodes[1].Name, "-o", "jsonpath={.status.podIP}")
	c.Kubectl(t, "exec", "-n", ns, c.Nodes[1].Name, "--", "sh", "-c", "echo hello > /tmp/x; httpd -p 8080 -h /tmp")
	if got := c.Kubectl(t, "exec", "-n", ns, c.Nodes[0].Name, "--", "wget", "-q", "-O", "-", "http://"+address+":8080/x"); got != "hello\n" {
		t.Errorf("from node to node: %q", got)
	}
	c.Kubectl(t, "exec", "-n", ns, c.Nodes[0].Name, "--", "sh", "-c", "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT < /dev/null")
}

// pod makes a pod of busybox on a node and waits until it is ready. The volumes are lines for YAML, see volume.
func pod(t *testing.T, c *kubelab.Cluster, ns, name, node, volumes string) {
	t.Helper()
	c.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  terminationGracePeriodSeconds: 1
  nodeSelector: {kubernetes.io/hostname: %s}
  containers:
  - name: shell
    image: %s
%s
`, name, ns, node, kubelab.BusyboxImage, volumes))
	c.Kubectl(t, "wait", "-n", ns, "pod/"+name, "--for=condition=Ready", "--timeout=150s")
}

// Draining evicts what has a controller and keeps to disruption budgets.
func TestDrain(t *testing.T) {
	t.Parallel()
	c := kubelab.Shared(t)
	ns := c.Namespace(t)
	c.Apply(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      terminationGracePeriodSeconds: 1
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[3]s, %[4]s]}]}]}}}
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: app}}}]
      containers: [{name: shell, image: %[2]q}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: app, namespace: %[1]s}
spec: {minAvailable: 1, selector: {matchLabels: {app: app}}}
`, ns, kubelab.BusyboxImage, c.Nodes[0].Name, c.Nodes[1].Name))
	c.Kubectl(t, "rollout", "status", "-n", ns, "deployment/app", "--timeout=150s")
	node := c.Nodes[1].Name
	c.Kubectl(t, "drain", node, "--pod-selector=app=app", "--timeout=150s")
	t.Cleanup(func() { c.Kubectl(t, "uncordon", node) })
	c.Kubectl(t, "rollout", "status", "-n", ns, "deployment/app", "--timeout=150s")
	on := strings.Fields(c.Kubectl(t, "get", "pods", "-n", ns, "-o", "jsonpath={.items[*].spec.nodeName}"))
	if len(on) != 2 || on[0] != c.Nodes[0].Name || on[1] != c.Nodes[0].Name {
		t.Errorf("after draining %s the pods are on %q", node, on)
	}
}

// Without power a node's pods are unreachable; after a boot the kubelet starts their containers again.
func TestPower(t *testing.T) {
	t.Parallel()
	c := kubelab.Shared(t)
	ns, node := c.Namespace(t), c.Nodes[2].Name // other tests use the first two
	pod(t, c, ns, "p", node, "")
	address := c.Kubectl(t, "get", "-n", ns, "pod/p", "-o", "jsonpath={.status.podIP}")
	c.PowerOff(t, node)
	if conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "80"), 200*time.Millisecond); err == nil {
		_ = conn.Close()
		t.Error("the pod's address answers without power")
	} else if !os.IsTimeout(err) && !strings.Contains(err.Error(), "no route") {
		t.Errorf("the pod's address: %v", err)
	}
	c.PowerOn(t, node)
	c.Kubectl(t, "wait", "-n", ns, "pod/p", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "--timeout=150s")
	c.Kubectl(t, "wait", "-n", ns, "pod/p", "--for=condition=Ready", "--timeout=150s")
	c.Kubectl(t, "exec", "-n", ns, "p", "--", "true")
}
