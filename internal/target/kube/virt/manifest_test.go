package virt

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// What is made of a VM, for each thing that it may boot.
func TestManifests(t *testing.T) {
	tag := target.Tag{Run: "run-1", Nonce: "00000000000000000000000000000000"}
	plain, faults := Read(map[string]string{
		"access_mode": "ReadWriteOnce", "disk_bus": busSCSI, "disk_cache": cacheNone, "eviction_strategy": evictionAuto, "network_binding": bindingMasquerade,
	})
	moves, more := Read(map[string]string{
		"access_mode": "ReadWriteMany", "disk_bus": busVirtio, "disk_cache": "writeback", "eviction_strategy": evictionAuto, "network_binding": bindingMasquerade,
		"cpu_model": "Cascadelake-Server", "machine_type": "q35",
	})
	bridged := plain
	bridged.Binding = bindingBridge
	if len(faults)+len(more) > 0 {
		t.Fatal(faults, more)
	}
	for name, test := range map[string]struct {
		settings Settings
		image    string
		objects  object.Settings
		system   *object.System
		topology target.Topology
	}{
		"container": {settings: plain, image: "docker://registry.example.com/debian:12", objects: object.Settings{
			PullSecret: "registry", PullPolicy: corev1.PullIfNotPresent, Reserve: true, Selector: map[string]string{"disk": "nvme"},
			Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		}},
		"claim":  {settings: moves, image: "pvc:golden", system: &object.System{Source: "golden", SizeBytes: 2 << 30, Block: true}, topology: target.Topology{Sockets: 2, Cores: 2, Threads: 1}},
		"kernel": {settings: bridged, image: "kernel:registry.example.com/bragg:1", objects: object.Settings{PullPolicy: corev1.PullNever}},
	} {
		boot := ReadBoot(test.image)
		b := &blueprints{Site{Boot: func(string) Boot { return boot }, Off: never, Dead: never}, test.settings, test.objects}
		r := object.Record{Version: object.RecordVersion, Template: "any", VCPUs: 4, RAMBytes: 4 << 30, Block: true, System: test.system, Topology: test.topology, UID: "uid-1"}
		r.VM = target.VM{ID: "bragg-oltp-0001-0123456789", Name: "OLTP-0001", NodeID: "node-1", Disks: test.settings.Disks([]int64{1 << 30, 2 << 30}, boot)}
		m := b.describe(r, object.OwnerOf(tag))
		given, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]any
		if err := json.Unmarshal(given, &all); err != nil {
			t.Fatal(err)
		}
		all["apiVersion"], all["kind"], all["disks"] = api.Machines.APIVersion(), api.Machines.Kind, r.VM.Disks
		compare(t, name, all)
	}
}

func never(context.Context, string) bool { return false }

func compare(t *testing.T, name string, value any) {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != string(want) {
		t.Errorf("%s: got %s", path, text)
	}
}
