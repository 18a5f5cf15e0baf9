package contract_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
	"github.com/braggdev/bragg/internal/target/kube/rights"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// breakWatches ends all watches, and refuses those that follow.
func breakWatches(s *kubetest.Server) {
	s.SetFault(func(r *http.Request) (int, string) {
		if r.URL.Query().Get("watch") != "" {
			return http.StatusServiceUnavailable, "the server is currently unable to handle the request"
		}
		return 0, ""
	})
	s.CloseClientConnections()
}

// kindsOfVMs are target files for both kinds, and the resource whose state is the power of a VM.
var kindsOfVMs = map[string]struct {
	config   func(t *testing.T, s *kubetest.Server) target.Config
	resource string
}{
	rights.KindPod:      {simulated, "pods"},
	rights.KindKubeVirt: {func(t *testing.T, s *kubetest.Server) target.Config { return virtual(t, s, nil) }, "virtualmachineinstances"},
}

// While a watch is down, what VMs are is read from the server: one that others removed is off.
func TestWatchIsDown(t *testing.T) {
	t.Parallel()
	for kind, k := range kindsOfVMs {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := kubetest.New(t, "node-1", "node-2")
			config := k.config(t, s)
			config.Options["patience"] = "5s"
			tgt := openAs(t, config, authority(t))
			tag := targettest.NewTag("run-1")
			vms := powered(t, tgt, tag, 1)
			breakWatches(s)
			for s.Calls()["watch "+k.resource] < 2 { // the mirror has noticed
				if _, err := tgt.Owned(t.Context(), tag); err != nil {
					t.Fatal(err)
				}
			}
			s.Remove(k.resource, vms[0].ID)
			if err := tgt.(target.VMPower).PowerOffVMs(t.Context(), tag, vms); err != nil {
				t.Error(err)
			}
		})
	}
}

// Many VMs, a thousand in the soak, are switched with a bounded number of calls: objects are listed and watched, and nothing is read for each
// VM. While the watches are down, a list serves all that wait for it.
func TestCallsOfManyVMs(t *testing.T) {
	t.Parallel()
	const nodes, perVM, lists = 10, 5, 4
	count := 200
	if os.Getenv("BRAGG_SOAK_FAULTS") != "" {
		count = 1000
	}
	var names []string
	var list []target.NodeConfig
	for i := range nodes {
		names = append(names, fmt.Sprintf("node-%02d", i+1))
		list = append(list, target.NodeConfig{ID: names[i]})
	}
	for kind, k := range kindsOfVMs {
		t.Run(kind, func(t *testing.T) {
			s := kubetest.New(t, names...)
			tgt := openAs(t, k.config(t, s), authority(t))
			tag := targettest.NewTag("run-1")
			power := tgt.(target.VMPower)
			calls := func(do func() error) (lists, watches, others int) {
				t.Helper()
				before := s.Calls()
				if err := do(); err != nil {
					t.Fatal(err)
				}
				for kind, n := range s.Calls() {
					switch n -= before[kind]; {
					case strings.HasPrefix(kind, "list "):
						lists += n
					case strings.HasPrefix(kind, "watch "):
						watches += n
					default:
						others += n
					}
				}
				return lists, watches, others
			}
			var vms []target.VM
			within := func(what string, listed, watched, called, listsMax, callsMax int) {
				t.Helper()
				t.Logf("%s: %d lists, %d watches, %d other calls", what, listed, watched, called)
				if listed > listsMax || called > callsMax {
					t.Errorf("%s: %d lists and %d other calls, want at most %d and %d", what, listed, called, listsMax, callsMax)
				}
			}
			l, w, o := calls(func() (err error) {
				if vms, err = tgt.Create(t.Context(), tag, specs(list, count)); err != nil {
					return err
				}
				return power.PowerOnVMs(t.Context(), tag, vms)
			})
			within("create and power on", l, w, o, lists*4, perVM*count) // pages of each kind of objects
			l, w, o = calls(func() error { return power.PowerOnVMs(t.Context(), tag, vms) })
			within("power on again", l, w, o, 0, 0)
			breakWatches(s)
			for s.Calls()["watch "+k.resource] < 2 {
				if _, err := tgt.Owned(t.Context(), tag); err != nil {
					t.Fatal(err)
				}
			}
			l, w, o = calls(func() error { return power.PowerOnVMs(t.Context(), tag, vms) })
			within("power on again without watches", l, w, o, count/2, 0)
			s.SetFault(nil)
			l, w, o = calls(func() error { return tgt.Delete(t.Context(), tag, vms) })
			within("delete", l, w, o, count/2, perVM*count)
			if left := leftIn(s); len(left) > 0 {
				t.Errorf("%d objects are left", len(left))
			}
		})
	}
}
