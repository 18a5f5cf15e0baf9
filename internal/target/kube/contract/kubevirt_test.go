package contract_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/agentvm"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// runGuests makes a simulated KubeVirt start real agents, with what the seeds of their VMs say.
func runGuests(t *testing.T, s *kubetest.Server) {
	t.Helper()
	run(t, s, func(secret map[string][]byte, home, address string) (string, error) {
		config, err := agentvm.Unpack(secret["user-data"], address, home)
		if err == nil && config == "" {
			err = errors.New("guest without an agent")
		}
		return config, err
	})
}

// virtual is a target file for a simulated cluster with KubeVirt.
func virtual(t *testing.T, s *kubetest.Server, options map[string]string) target.Config {
	t.Helper()
	if s.KubeVirt == nil {
		s.KubeVirt = &kubetest.KubeVirt{}
	}
	c := simulated(t, s)
	c.Options["kind"], c.Options["image"] = "kubevirt", "registry.example.com/debian:12"
	maps.Copy(c.Options, options)
	return c
}

// leftIn lists what is left of VMs in a simulated cluster.
func leftIn(s *kubetest.Server) []string {
	return slices.DeleteFunc(kubetest.Left(s), func(name string) bool { return strings.HasSuffix(name, "/golden") })
}

// ways are target files for VMs of KubeVirt: bound to their nodes, moving between them, and with system disks that are copies of a claim.
var ways = map[string]map[string]string{
	"bound": {"agents": "port-forward"},
	"moves": {"access_mode": "ReadWriteMany", "disk_bus": "virtio"},
	"claim": {"image": "pvc:golden"},
}

// The contract on a simulated cluster with a simulated KubeVirt, with real agents.
func TestContractKubeVirt(t *testing.T) {
	t.Parallel()
	for way, options := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			simulatedContract(t, func(t *testing.T, s *kubetest.Server) target.Config {
				if strings.HasSuffix(t.Name(), "/dial") {
					runGuests(t, s)
				}
				golden(s)
				return virtual(t, s, options)
			})
		})
	}
}

// golden puts a claim with a system disk.
func golden(s *kubetest.Server) {
	s.Put("persistentvolumeclaims", kubetest.Object{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": kubetest.Object{"name": "golden"},
		"spec":   kubetest.Object{"volumeMode": "Block", "resources": kubetest.Object{"requests": kubetest.Object{"storage": "2Gi"}}},
		"status": kubetest.Object{"phase": "Bound", "capacity": kubetest.Object{"storage": "2Gi"}},
	})
}

// Options that do not fit together are refused.
func TestOptionsOfKubeVirt(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1")
	for want, options := range map[string]map[string]string{
		"option access_mode is for kind kubevirt": {"kind": "pod", "access_mode": "ReadWriteMany"},
		"volume_mode is filesystem":               {"volume_mode": "filesystem"},
		"run_as_user is for kind pod":             {"run_as_user": "0"},
		"needs VMs that can migrate":              {"eviction_strategy": "LiveMigrate"},
		"guest_key needs a guest_user":            {"guest_key": "ssh-ed25519 AAAA"},
	} {
		if _, err := openOnly(t, virtual(t, s, options)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v", options, err)
		}
	}
}

// A cluster without KubeVirt is reported before anything is made.
func TestWithoutKubeVirt(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1")
	c := virtual(t, s, nil)
	s.KubeVirt = nil
	_, err := openOnly(t, c)
	wantCode(t, err, "kube-no-kubevirt", "does not serve kubevirt.io/v1")
}

// What a report must say of KubeVirt is in the facts; missing rights are found first.
func TestFactsOfKubeVirt(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1")
	s.Put("kubevirts", kubetest.Object{
		"metadata": kubetest.Object{"name": "kubevirt"},
		"spec": kubetest.Object{"configuration": kubetest.Object{
			"machineType": "q35", "cpuModel": "Cascadelake-Server", "developerConfiguration": kubetest.Object{"useEmulation": true},
		}},
	})
	c := virtual(t, s, nil)
	i, err := openOnly(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if !i.Systems || i.Hypervisor != "kvm" || len(i.Simulates) > 0 {
		t.Errorf("got %+v", i)
	}
	text := fmt.Sprint(i.Facts)
	for _, want := range []string{
		"{KubeVirt v1.6.0-simulated}", "{machine type q35}", "{CPU model Cascadelake-Server}", "{emulation ", "{eviction strategy None}", "{network binding masquerade}",
		"{access mode ReadWriteOnce}", "{volume mode block}", "{disks bus scsi, cache none}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("facts lack %q: %s", want, text)
		}
	}
	s.Denied["update virtualmachines/stop"] = true
	_, err = openOnly(t, c)
	wantCode(t, err, "kube-forbidden", "update virtualmachines/stop.subresources.kubevirt.io")
}

// Every reason why a VM does not start is reported in the cluster's words, and nothing starts later by itself.
func TestWordsOfKubeVirt(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	tag := targettest.NewTag("run-1")
	start := func(options map[string]string, code, text string) {
		t.Helper()
		options["patience"] = "2s"
		tgt := openAs(t, virtual(t, s, options), authority(t))
		vms, err := tgt.Create(t.Context(), tag, specs([]target.NodeConfig{{ID: "node-1"}}, 1, 1<<20))
		if err == nil {
			err = tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms)
		}
		wantCode(t, err, code, text)
		if left := s.Objects("virtualmachineinstances"); len(left) > 0 {
			t.Errorf("%s: an instance is left: %v", code, left)
		}
		if vms, err = tgt.Owned(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
		if err := tgt.Delete(t.Context(), tag, vms); err != nil {
			t.Error(err)
		}
	}
	start(map[string]string{"image": kubetest.MissingImage}, "kube-image", "not found")
	start(map[string]string{"image": "pvc:none"}, "kube-not-found", "none")
	golden(s)
	s.Put("datavolumes", kubetest.Object{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": kubetest.Object{"name": "golden"}, "status": kubetest.Object{
		"phase": "ImportInProgress", "progress": "45.00%", "conditions": []any{kubetest.Object{"type": "Running", "status": "True", "message": "Import in progress"}},
	}})
	start(map[string]string{"image": "pvc:golden"}, "kube-data-volume", "ImportInProgress, 45.00%; Running: Import in progress")
	s.SetFault(func(r *http.Request) (int, string) {
		if strings.HasSuffix(r.URL.Path, "/start") { // the scheduler finds no room afterwards
			kubetest.SetSchedulable(s, "node-1", false)
		}
		return 0, ""
	})
	start(map[string]string{}, "kube-unschedulable", "1 node(s) were unschedulable")
}

// A VM that may migrate only prefers its node: one that the scheduler starts elsewhere is stopped again.
func TestStartedElsewhere(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	tgt := openAs(t, virtual(t, s, map[string]string{"access_mode": "ReadWriteMany"}), authority(t))
	tag := targettest.NewTag("run-1")
	vms, err := tgt.Create(t.Context(), tag, specs([]target.NodeConfig{{ID: "node-1"}}, 1))
	if err != nil {
		t.Fatal(err)
	}
	kubetest.SetSchedulable(s, "node-1", false)
	wantCode(t, tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms), "kube-unschedulable", `on node "node-2" and not on "node-1"`)
	if left := s.Objects("virtualmachineinstances"); len(left) > 0 {
		t.Errorf("it still runs: %v", left)
	}
}

// A migration that KubeVirt refuses, or that fails, says why; the VM keeps running where it is.
func TestMigrationsThatFail(t *testing.T) {
	t.Parallel()
	for text, k := range map[string]*kubetest.KubeVirt{
		"DisksNotLiveMigratable: PVC is not shared":       {Immobile: "PVC is not shared"},
		"cannot migrate to a chosen node":                 {NoNodeSelector: true},
		"Failed; the domain did not converge in 800 secs": {FailMigrations: "the domain did not converge in 800 secs"},
	} {
		s := kubetest.New(t, "node-1", "node-2")
		s.KubeVirt = k
		tgt := openAs(t, virtual(t, s, map[string]string{"access_mode": "ReadWriteMany"}), authority(t))
		tag := targettest.NewTag("run-1")
		vms := powered(t, tgt, tag, 1)
		wantCode(t, tgt.(target.Migrator).MigrateVMs(t.Context(), tag, vms, "node-2"), "kube-migration", text)
		owned, err := tgt.Owned(t.Context(), tag)
		if err != nil || owned[0].NodeID != "node-1" || owned[0].Power != target.PowerOn {
			t.Errorf("%s: %+v, %v", text, owned, err)
		}
		if left := s.Objects("virtualmachineinstancemigrations"); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	}
	if _, ok := openAs(t, virtual(t, kubetest.New(t, "node-1"), nil), nil).(target.Migrator); ok {
		t.Error("VMs with ReadWriteOnce disks can migrate")
	}
}

// What KubeVirt does by itself is reported: drains that move VMs, and VMs that end. Own moves and stops are not.
func TestReportsOfKubeVirt(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	tgt := openAs(t, virtual(t, s, map[string]string{"access_mode": "ReadWriteMany"}), authority(t))
	tag := targettest.NewTag("run-1")
	vms := powered(t, tgt, tag, 3) // on nodes 1, 2, 1
	seen := make(chan target.PlatformEvent, 16)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- tgt.(target.EventWatcher).WatchEvents(ctx, tag, func(e target.PlatformEvent) { seen <- e })
	}()
	next := func(kind target.PlatformEventKind, text string, again func()) {
		t.Helper()
		for range 300 { // the watcher may begin a moment later
			again()
			select {
			case e := <-seen:
				if kind == target.PlatformStopped && e.VM == vms[2].Name {
					continue // it moved more than once
				}
				if e.Kind != kind || !strings.Contains(e.Text, text) || e.At.IsZero() {
					t.Fatalf("got %+v, want %s: %s", e, kind, text)
				}
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		t.Fatalf("no %s", kind)
	}
	n := 0
	next(target.PlatformMoved, "KubeVirt moved it from node", func() {
		if len(seen) == 0 {
			n++
			s.Put("virtualmachineinstancemigrations", kubetest.Object{"metadata": kubetest.Object{"name": fmt.Sprint("theirs-", n)}, "spec": kubetest.Object{"vmiName": vms[2].ID}})
		}
	})
	if err := tgt.(target.Migrator).MigrateVMs(t.Context(), tag, vms[1:2], "node-1"); err != nil {
		t.Fatal(err)
	}
	if err := tgt.(target.VMPower).PowerOffVMs(t.Context(), tag, vms[1:2]); err != nil {
		t.Fatal(err)
	}
	for name := range s.Objects("pods") {
		if strings.Contains(name, vms[0].ID) {
			s.Evict(name, "Eviction API: evicting")
		}
	}
	next(target.PlatformStopped, "virt-launcher pod is gone", func() {})
	_, err := tgt.(target.AgentDialer).DialAgent(t.Context(), vms[0])
	var stopped *target.StoppedError
	if !errors.As(err, &stopped) || !strings.Contains(stopped.Reason, "KubeVirt calls its instance Failed") {
		t.Errorf("got %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A VM on a node whose kubelet does not answer can be removed: no kubelet confirms the end of its pod.
func TestRemovedFromDeadNode(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	tgt := openAs(t, virtual(t, s, nil), authority(t))
	tag := targettest.NewTag("run-1")
	vms := powered(t, tgt, tag, 2)
	if err := tgt.(target.ReadyChecker).Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.SetNode("node-1", false)
	for tgt.(target.HostChecker).HostUp(t.Context(), "node-1") == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := tgt.(target.VMPower).PowerOffVMs(t.Context(), tag, vms[:1]); err != nil {
		t.Error(err)
	}
	if err := tgt.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
	if left := leftIn(s); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// The agent's key is in the Secret of the seed only, and no seed has a password.
func TestSecretsOfKubeVirt(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	config := virtual(t, s, map[string]string{"guest_user": "bench"})
	tgt := openAs(t, config, authority(t))
	powered(t, tgt, targettest.NewTag("run-1"), 1)
	var seed []string
	for _, o := range s.Objects("secrets") {
		for name, value := range o["data"].(kubetest.Object) {
			text, err := base64.StdEncoding.DecodeString(value.(string))
			if err != nil {
				t.Fatal(err)
			}
			seed = append(seed, name)
			if name == "user-data" && (!strings.Contains(string(text), "lock_passwd: true") || strings.Contains(string(text), "passwd: \"") || strings.Contains(string(text), "chpasswd")) {
				t.Errorf("a password in %s", text)
			}
		}
	}
	slices.Sort(seed)
	if want := []string{"bragg.json", "meta-data", "network-config", "user-data"}; !slices.Equal(seed, want) {
		t.Errorf("the seed has %q, want %q", seed, want)
	}
	inventory, err := tgt.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{fmt.Sprint(inventory)}
	for _, resource := range []string{"pods", "configmaps", "persistentvolumeclaims", "virtualmachines", "virtualmachineinstances"} {
		texts = append(texts, fmt.Sprint(s.Objects(resource)))
	}
	for _, text := range texts {
		if strings.Contains(text, s.Token) || strings.Contains(text, "PRIVATE KEY") {
			t.Error("a secret is outside of a Secret")
		}
	}
}
