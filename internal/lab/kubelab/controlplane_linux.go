package kubelab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// startControlPlane returns when the API server answers and the other parts run.
func (k *keeper) startControlPlane(ctx context.Context) error {
	etcd := filepath.Join(k.Dir, "etcd")
	if err := os.Mkdir(etcd, 0o700); err != nil {
		return err
	}
	// What it syncs need not survive this process, and a disk would make it slow.
	if err := mount("tmpfs", etcd, "tmpfs", 0, "mode=700,size=1g"); err != nil {
		return err
	}
	err := errors.Join(
		k.start("etcd", append([]string{k.Programs.Etcd}, etcdArguments(etcd)...)...),
		k.start("apiserver", append([]string{k.Programs.Kube, "kube-apiserver"}, k.apiserverArguments()...)...))
	if err != nil {
		return err
	}
	if err := k.waitReady(ctx); err != nil {
		return err
	}
	k.log("the API server is ready")
	err = errors.Join(
		k.start("controller-manager", append([]string{k.Programs.Kube, "kube-controller-manager"}, k.managerArguments()...)...),
		k.start("scheduler", k.Programs.Kube, "kube-scheduler", "--kubeconfig="+k.file("scheduler.kubeconfig"),
			"--authentication-kubeconfig="+k.file("scheduler.kubeconfig"), "--authorization-kubeconfig="+k.file("scheduler.kubeconfig"),
			"--bind-address=127.0.0.1", "--leader-elect=false"))
	if err != nil {
		return err
	}
	if k.Simulated > 0 {
		err := k.start("simulated-kubelets", k.Programs.Kube, "simulated-kubelets", "--kubeconfig="+k.file("helpers.kubeconfig"),
			"--nodes="+strconv.Itoa(k.Simulated))
		if err != nil {
			return err
		}
	}
	if len(k.Nodes) > 0 {
		if err := k.startStorage(ctx); err != nil {
			return err
		}
		k.log("the storage is ready")
	}
	return errors.Join(k.waitDefaults(ctx), k.waitSimulated(ctx))
}

func (d *description) file(name string) string { return filepath.Join(d.Dir, name) }

func etcdArguments(dir string) []string {
	return []string{
		"--data-dir=" + dir, "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=default=http://127.0.0.1:2380", "--log-level=error", "--logger=zap",
	}
}

// apiserverArguments make it serve at port 443, so that the service "kubernetes" needs no translation of addresses.
func (d *description) apiserverArguments() []string {
	return []string{
		"--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0", "--secure-port=443", "--advertise-address=" + d.apiAddress().String(),
		"--tls-cert-file=" + d.file("apiserver.crt"), "--tls-private-key-file=" + d.file("apiserver.key"), "--client-ca-file=" + d.file("ca.crt"),
		"--requestheader-client-ca-file=" + d.file("ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--token-auth-file=" + d.file("tokens.csv"), "--authorization-mode=Node,RBAC", "--allow-privileged=true", "--anonymous-auth=false",
		"--service-cluster-ip-range=" + d.services().String(),
		"--service-account-issuer=https://kubernetes.default.svc", "--api-audiences=https://kubernetes.default.svc",
		"--service-account-key-file=" + d.file("service-accounts.key"), "--service-account-signing-key-file=" + d.file("service-accounts.key"),
		"--kubelet-client-certificate=" + d.file("kubelet-client.crt"), "--kubelet-client-key=" + d.file("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP", // names would need DNS
		"--audit-policy-file=" + d.file("audit.yaml"), "--audit-log-path=" + d.file(auditFile), "--audit-log-mode=blocking",
		"--endpoint-reconciler-type=none",
	}
}

func (d *description) managerArguments() []string {
	config := d.file("controller-manager.kubeconfig")
	return []string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--service-account-private-key-file=" + d.file("service-accounts.key"), "--root-ca-file=" + d.file("ca.crt"),
		"--use-service-account-credentials=true", "--bind-address=127.0.0.1", "--leader-elect=false",
		// Load on the machine must not slow down a controller that a test waits for.
		"--kube-api-qps=200", "--kube-api-burst=400", "--concurrent-gc-syncs=20",
	}
}

// client talks to the API server with the rights of the admin.
func (k *keeper) get(path string) (string, error) {
	text, err := os.ReadFile(k.file("ca.crt"))
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	request, err := http.NewRequest(http.MethodGet, k.server()+path, nil)
	if err != nil {
		return "", err
	}
	token, err := firstToken(k.file("tokens.csv"))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	const answerTimeLimit = 10 * time.Second
	response, err := (&http.Client{Transport: transport, Timeout: answerTimeLimit}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.300s", path, response.Status, body)
	}
	return string(body), err
}

// waitReady returns when the API server is ready, or has ended.
func (k *keeper) waitReady(ctx context.Context) error {
	return waitFor(ctx, "the API server", func() error {
		_, err := k.get("/readyz")
		return err
	})
}

// waitDefaults returns when pods can be made: the default namespace has a ServiceAccount.
func (k *keeper) waitDefaults(ctx context.Context) error {
	return waitFor(ctx, "the controller manager", func() error {
		_, err := k.get("/api/v1/namespaces/default/serviceaccounts/default")
		return err
	})
}

// waitSimulated returns when all simulated nodes are ready.
func (k *keeper) waitSimulated(ctx context.Context) error {
	if k.Simulated == 0 {
		return nil
	}
	return waitFor(ctx, "the simulated nodes", func() error {
		text, err := k.get("/api/v1/nodes?labelSelector=" + SimulatedLabel)
		if err != nil {
			return err
		}
		var nodes struct {
			Items []struct {
				Status struct {
					Conditions []struct{ Type, Status string }
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &nodes); err != nil {
			return err
		}
		ready := 0
		for _, n := range nodes.Items {
			for _, c := range n.Status.Conditions {
				if c.Type == "Ready" && c.Status == "True" {
					ready++
				}
			}
		}
		if ready < k.Simulated {
			return fmt.Errorf("%d of %d are ready", ready, k.Simulated)
		}
		return nil
	})
}

// kubectl runs kubectl with the rights of the cluster's helpers.
func (k *keeper) kubectl(ctx context.Context, stdin string, args ...string) error {
	cmd := exec.CommandContext(ctx, k.Programs.Kube, append([]string{"kubectl", "--kubeconfig=" + k.file("helpers.kubeconfig"), "--cache-dir=" + k.file("kubectl")}, args...)...)
	return runWith(cmd, stdin)
}
