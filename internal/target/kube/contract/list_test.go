package contract_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
	"github.com/braggdev/bragg/internal/target/targettest/faulttest"
	"github.com/braggdev/bragg/internal/trust"
)

// harness is for the list of faults that every provider passes. options are those of the target file.
func harness(options string) faulttest.Harness {
	return faulttest.Harness{
		Provider: kube.Provider(), Threads: 2, Start: func(t *testing.T) faulttest.Platform { return platform(t, options) },
		Open: func(ctx context.Context, c target.Config) (target.Target, error) {
			a, err := trust.New("run-1", time.Hour)
			if err != nil {
				return nil, err
			}
			return kube.Provider().Open(ctx, c, target.OpenOptions{Authority: a})
		},
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	harness("image: 'bragg-agent:test'").Run(t)
}

// The same with VMs of KubeVirt.
func TestFaultsKubeVirt(t *testing.T) {
	t.Parallel()
	h := harness("kind: kubevirt, image: 'debian:12', access_mode: ReadWriteMany")
	h.Soak = []string{"answers lost", "busy"}
	h.Run(t)
}

// kinds are what VMs are made of.
var kinds = map[string]string{
	"pods": "Pod", "secrets": "Secret", "configmaps": "ConfigMap", "persistentvolumeclaims": "PersistentVolumeClaim", "volumesnapshots": "VolumeSnapshot",
	"virtualmachines": "VirtualMachine", "virtualmachineinstances": "VirtualMachineInstance",
	"virtualmachineinstancemigrations": "VirtualMachineInstanceMigration",
}

// platform is a simulated cluster.
func platform(t *testing.T, options string) faulttest.Platform {
	t.Helper()
	s := kubetest.New(t, "node-1", "node-2")
	s.KubeVirt = &kubetest.KubeVirt{}
	dir := t.TempDir()
	writePEM(t, filepath.Join(dir, "ca.pem"), s.Certificate().Raw)
	text := fmt.Sprintf("provider: kubernetes\nname: simulated\nendpoint: %[2]s\nca_file: %[1]s/ca.pem\npool: fast\n"+
		"credentials: {platform: {secret: {file: %[1]s/token}}}\noptions: {namespace: %[3]s, agents: direct, %[4]s}\n", dir, s.URL, kubetest.Namespace, options)
	for name, text := range map[string]string{"token": s.Token, "target.yml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	planted := map[string]bool{}
	return faulttest.Platform{
		File: filepath.Join(dir, "target.yml"), Secrets: []string{s.Token}, Front: func(before func(http.Handler) http.Handler) { kubetest.Front(s, before) }, Change: changeOf,
		Busy: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		Left: func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.DeleteFunc(kubetest.Left(s), func(name string) bool { return planted[name] })
		},
		Plant: func(_ *testing.T, left string) {
			kind, name, _ := strings.Cut(left, "/")
			mu.Lock()
			planted[left] = true
			mu.Unlock()
			s.Put(kind, kubetest.Object{
				"apiVersion": "v1", "kind": kinds[kind], "metadata": kubetest.Object{"name": name, "labels": kubetest.Object{"app": "accounting"}},
				"status": kubetest.Object{"phase": "Running"},
			})
		},
		Intact: func() error {
			mu.Lock()
			defer mu.Unlock()
			for one := range planted {
				kind, name, _ := strings.Cut(one, "/")
				if o := s.Objects(kind)[name]; o == nil || !strings.Contains(fmt.Sprint(o), "accounting") {
					return fmt.Errorf("%s of another owner was changed or deleted: %v", one, o)
				}
			}
			return nil
		},
	}
}

// changeOf is the method and the resource of a request that changes the cluster.
func changeOf(r *http.Request) string {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "authorization") {
		return ""
	}
	return r.Method + " " + r.URL.Path
}
