package rehearsal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// storageOf reads what the cluster says of the volume of a claim.
func (r *rig) storageOf(t *testing.T, claim string) (name, class, driver, reclaim string) {
	t.Helper()
	name = r.Kubectl(t, "get", "-n", r.namespace, "pvc", claim, "-o", "jsonpath={.spec.volumeName}")
	var volume struct {
		Spec struct {
			Class   string                  `json:"storageClassName"`
			Reclaim string                  `json:"persistentVolumeReclaimPolicy"`
			CSI     struct{ Driver string } `json:"csi"`
		}
	}
	if err := json.Unmarshal([]byte(r.Kubectl(t, "get", "pv", name, "-o", "json")), &volume); err != nil {
		t.Fatal(err)
	}
	return name, volume.Spec.Class, volume.Spec.CSI.Driver, volume.Spec.Reclaim
}

// The storage class, the reclaim policy and the CSI driver that an inventory states are those of the volumes that the cluster makes. With
// the policy Retain a volume outlives its VM, as the inventory says.
func TestStorageIsRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster with nodes")
	}
	t.Parallel()
	shared := newRig(t)
	for name, test := range map[string]struct{ class, binding, reclaim string }{
		"deleted":  {kubelab.StorageClass, "Immediate", "Delete"},
		"waits":    {kubelab.StorageClassWait, "WaitForFirstConsumer", "Delete"},
		"retained": {kubelab.StorageClassRetain, "Immediate", "Retain: the volumes of deleted VMs stay in the storage until an administrator removes them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := *shared
			r.config.Pool = test.class
			tgt := r.open(t)
			i, err := tgt.Inventory(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			facts := map[string]string{}
			for _, f := range i.Facts {
				facts[f.Name] = f.Value
			}
			tag := targettest.NewTag(name)
			vms, err := tgt.Create(t.Context(), tag, r.specs(1))
			if err != nil {
				t.Fatal(err)
			}
			volume, class, driver, reclaim := r.storageOf(t, vms[0].ID+"-"+filepath.Base(vms[0].Disks[0].Device))
			if driver != kubelab.StorageDriver || facts["CSI driver"] != driver {
				t.Errorf("the volume is of the driver %q, recorded %q", driver, facts["CSI driver"])
			}
			if class != test.class || facts["storage class"] != class+", binding "+test.binding {
				t.Errorf("the volume is of the class %q, recorded %q", class, facts["storage class"])
			}
			if facts["reclaim policy"] != test.reclaim || !strings.HasPrefix(test.reclaim, reclaim) {
				t.Errorf("the volume has the policy %q, recorded %q", reclaim, facts["reclaim policy"])
			}
			if err := tgt.Delete(t.Context(), tag, vms); err != nil {
				t.Fatal(err)
			}
			if reclaim == "Retain" {
				if phase := r.Kubectl(t, "get", "pv", volume, "-o", "jsonpath={.status.phase}"); phase != "Released" && phase != "Bound" {
					t.Errorf("the volume is %q", phase)
				}
				r.Kubectl(t, "delete", "pv", volume, "--wait=false")
			} else {
				r.Kubectl(t, "wait", "pv/"+volume, "--for=delete", "--timeout=150s")
			}
		})
	}
}

// wantStorage wants the storage in the bundle of a run, and in its report.
func (u *user) wantStorage(t *testing.T, runs string, recorded [][2]string) {
	t.Helper()
	facts := map[string]string{}
	for _, f := range recorded {
		facts[f[0]] = f[1]
	}
	pages, err := filepath.Glob(filepath.Join(runs, "*", "report.html"))
	if err != nil || len(pages) != 1 {
		t.Fatalf("reports %q, %v", pages, err)
	}
	page, err := os.ReadFile(pages[0])
	if err != nil {
		t.Fatal(err)
	}
	_, terminal := u.command(t, "report", "--runs", runs, "last")
	for name, want := range map[string]string{
		"storage class": kubelab.StorageClass + ", binding Immediate", "CSI driver": kubelab.StorageDriver, "reclaim policy": "Delete",
	} {
		if facts[name] != want {
			t.Errorf("the bundle has %q as %s, want %q", facts[name], name, want)
		}
		for where, text := range map[string]string{"page": string(page), "terminal": terminal} {
			if !strings.Contains(text, name) || !strings.Contains(text, want) {
				t.Errorf("the report (%s) lacks %s %q", where, name, want)
			}
		}
	}
}
