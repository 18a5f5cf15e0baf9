package contract_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/targettest"
)

const dialMax = 30 * time.Second

// onNode is a target file for a real node of the cluster, with the rights of the shipped Role alone.
func onNode(t *testing.T, c *kubelab.Cluster, namespace string) target.Config {
	t.Helper()
	config := inNamespace(t, c, namespace)
	config.Nodes = []target.NodeConfig{{ID: c.Nodes[0].Name}}
	config.Options["image"], config.Options["image_pull_policy"] = c.AgentImage(t), "Never"
	return config
}

// Agents in pods of a real kubelet answer at the addresses of their pods and through the API server, and connections end with their
// pods. A pod that the cluster removes is noticed, with the reason.
func TestAgentsInPods(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster with a node")
	}
	t.Parallel()
	c := kubelab.Shared(t)
	for _, way := range []string{"port-forward", "auto"} { // direct connections are those of the rehearsal on a cluster with volumes
		t.Run(way, func(t *testing.T) {
			namespace := c.Namespace(t)
			config := onNode(t, c, namespace)
			config.Options["agents"] = way
			tgt := openAs(t, config, authority(t))
			tag := targettest.NewTag("run-1")
			vms, err := tgt.Create(t.Context(), tag, specs(config.Nodes, 2))
			if err != nil {
				t.Fatal(err)
			}
			power, agents := tgt.(target.VMPower), tgt.(target.AgentDialer)
			if err := power.PowerOnVMs(t.Context(), tag, vms); err != nil {
				t.Fatal(err)
			}
			boots := map[string]bool{}
			for _, vm := range vms {
				ctx, cancel := context.WithTimeout(t.Context(), dialMax)
				conn, err := agents.DialAgent(ctx, vm)
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				boot, err := greet(t.Context(), conn)
				if err != nil || boots[boot] {
					t.Fatalf("agent %q, %v", boot, err)
				}
				boots[boot] = true
				defer conn.Close()
				if vm.Name == vms[0].Name {
					if err := power.PowerOffVMs(t.Context(), tag, vms[:1]); err != nil {
						t.Fatal(err)
					}
					if _, err := conn.Read(make([]byte, 1)); err == nil {
						t.Error("a connection outlived its pod")
					}
				}
			}
			c.Kubectl(t, "delete", "-n", namespace, "pod", vms[1].ID, "--wait=true")
			_, err = agents.DialAgent(t.Context(), vms[1])
			var stopped *target.StoppedError
			if !errors.As(err, &stopped) {
				t.Errorf("got %v", err)
			}
			if err := tgt.Delete(t.Context(), tag, vms); err != nil {
				t.Fatal(err)
			}
			if left := strings.TrimSpace(c.Kubectl(t, "get", "-n", namespace, "pods,pvc,configmaps,secrets", "-l", object.Ours, "-o", "name")); left != "" {
				t.Errorf("left are %s", left)
			}
		})
	}
}

// An image that no registry has is reported with the words of the kubelet.
func TestImageOnNode(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster with a node")
	}
	t.Parallel()
	c := kubelab.Shared(t)
	config := onNode(t, c, c.Namespace(t))
	config.Options["image"], config.Options["patience"] = "registry.invalid/none:1", "20s"
	for policy, text := range map[string]string{"Never": "ErrImageNeverPull", "IfNotPresent": "registry.invalid"} {
		config.Options["image_pull_policy"] = policy
		tgt := openAs(t, config, authority(t))
		tag := targettest.NewTag("run-1")
		vms, err := tgt.Create(t.Context(), tag, specs(config.Nodes, 1))
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms), "kube-image", text)
		if err := tgt.Delete(t.Context(), tag, vms); err != nil {
			t.Error(err)
		}
	}
}
