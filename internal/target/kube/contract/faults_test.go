package contract_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// powered makes VMs that are on.
func powered(t *testing.T, tgt target.Target, tag target.Tag, n int) []target.VM {
	t.Helper()
	vms, err := tgt.Create(t.Context(), tag, specs([]target.NodeConfig{{ID: "node-1"}, {ID: "node-2"}}, n, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if err := tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	return vms
}

// A server that is busy, restarts, or answers slowly delays calls and does not fail them.
func TestBusyServer(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	var requests atomic.Int32
	s.Fault = func(r *http.Request) (int, string) {
		switch n := requests.Add(1); {
		case r.URL.Query().Get("watch") != "":
		case n%5 == 0:
			return http.StatusTooManyRequests, "the server has received too many requests and has asked us to try again later"
		case n%7 == 0:
			return http.StatusServiceUnavailable, "the server is currently unable to handle the request"
		}
		return 0, ""
	}
	tgt := openAs(t, simulated(t, s), authority(t))
	tag := targettest.NewTag("run-1")
	vms := powered(t, tgt, tag, 4)
	if err := tgt.Delete(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	if left := s.Objects("configmaps"); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// A server that stays busy is an error after a bounded number of calls, with what it said.
func TestServerThatStaysBusy(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1")
	s.Fault = func(r *http.Request) (int, string) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps") {
			return http.StatusServiceUnavailable, "etcdserver: leader changed"
		}
		return 0, ""
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := openAs(t, simulated(t, s), nil).Create(ctx, targettest.NewTag("run-1"), specs([]target.NodeConfig{{ID: "node-1"}}, 1))
	wantCode(t, err, api.CodeBusy, "leader changed")
	if n := s.Calls()["create configmaps"]; n > 100 {
		t.Errorf("%d calls", n)
	}
}

// A token that expires is reported as that, and no error contains it.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	config := simulated(t, s)
	tgt := openAs(t, config, authority(t))
	tag := targettest.NewTag("run-1")
	vms := powered(t, tgt, tag, 1)
	secret := s.Token
	s.SetToken("another")
	err := tgt.Delete(t.Context(), tag, vms)
	wantCode(t, err, api.CodeUnauthorized, "Unauthorized")
	_, openErr := openOnly(t, config)
	wantCode(t, openErr, api.CodeUnauthorized, "Unauthorized")
	for _, err := range []error{err, openErr} {
		if text := diag.Sentence(err); strings.Contains(text, secret) {
			t.Errorf("%q contains the token", text)
		}
	}
}

// The server forgets versions and ends watches: objects are listed again, and nothing is missed.
func TestWatchExpires(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	tgt := openAs(t, simulated(t, s), authority(t))
	tag := targettest.NewTag("run-1")
	for range 3 {
		vms := powered(t, tgt, tag, 2)
		s.Forget()
		if err := tgt.(target.VMPower).PowerOffVMs(t.Context(), tag, vms); err != nil {
			t.Fatal(err)
		}
		s.Forget()
		if err := tgt.Delete(t.Context(), tag, vms); err != nil {
			t.Fatal(err)
		}
	}
	if owned, err := tgt.Owned(t.Context(), tag); err != nil || len(owned) > 0 {
		t.Errorf("owned are %v, %v", owned, err)
	}
}

// Objects of others with the same names stay untouched, whatever they are.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	tgt := openAs(t, simulated(t, s), authority(t))
	tag := targettest.NewTag("run-1")
	vms, err := tgt.Create(t.Context(), tag, specs([]target.NodeConfig{{ID: "node-1"}}, 2, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	foreign := func(kind, name string) kubetest.Object {
		return kubetest.Object{"apiVersion": "v1", "kind": kind, "metadata": kubetest.Object{"name": name}, "status": kubetest.Object{"phase": "Running"}}
	}
	s.Put("pods", foreign("Pod", vms[0].ID))
	s.Put("secrets", foreign("Secret", vms[1].ID))
	power := tgt.(target.VMPower)
	for i := range vms {
		if err := power.PowerOnVMs(t.Context(), tag, vms[i:i+1]); diag.ExitCode(err) != diag.ExitRefused {
			t.Errorf("vm %d: %v", i, err)
		}
	}
	if err := tgt.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
	if s.Objects("pods")[vms[0].ID] == nil || s.Objects("secrets")[vms[1].ID] == nil {
		t.Error("an object of another owner was deleted")
	}
	if len(s.Objects("persistentvolumeclaims")) > 0 || len(s.Objects("configmaps")) > 0 {
		t.Error("own objects are left")
	}
}

// What the cluster does by itself is reported with its words: evictions, and nodes that come and go. Own deletions are not.
func TestReports(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2", "node-3")
	tgt := openAs(t, simulated(t, s), authority(t))
	tag := targettest.NewTag("run-1")
	vms := powered(t, tgt, tag, 4)
	seen := make(chan target.PlatformEvent, 16)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	ready := make(chan bool)
	go func() {
		close(ready)
		ended <- tgt.(target.EventWatcher).WatchEvents(ctx, tag, func(e target.PlatformEvent) { seen <- e })
	}()
	<-ready
	next := func(kind target.PlatformEventKind, vm, node, text string, again func()) {
		t.Helper()
		for range 300 { // the watcher may begin a moment later
			again()
			select {
			case e := <-seen:
				if e.VM == "" && e.NodeID == "node-3" && (node != "node-3" || e.Kind == target.PlatformNodeDown) {
					continue // of the changes until the watcher had begun; on a busy machine they are reported later
				}
				if e.Kind != kind || e.VM != vm || e.NodeID != node || !strings.Contains(e.Text, text) || e.At.IsZero() {
					t.Fatalf("got %+v, want %s of %q", e, kind, vm)
				}
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		t.Fatalf("no %s", kind)
	}
	s.SetNode("node-3", false) // until the watcher has begun, changes are not reported
	next(target.PlatformNodeUp, "", "node-3", "ready", func() {
		if len(seen) == 0 {
			s.SetNode("node-3", false)
			time.Sleep(20 * time.Millisecond)
			for len(seen) > 0 {
				<-seen
			}
			s.SetNode("node-3", true)
		}
	})
	s.SetNode("node-2", false)
	next(target.PlatformNodeDown, "", "node-2", "stopped posting", func() {})
	s.SetNode("node-2", true)
	kinds := map[target.PlatformEventKind]int{}
	for range 3 { // the node, and its two pods that were running, in any order
		select {
		case e := <-seen:
			kinds[e.Kind]++
			if e.NodeID != "node-2" {
				t.Errorf("got %+v", e)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("got %v", kinds)
		}
	}
	if kinds[target.PlatformNodeUp] != 1 || kinds[target.PlatformStopped] != 2 {
		t.Errorf("got %v", kinds)
	}
	if err := tgt.(target.VMPower).PowerOffVMs(t.Context(), tag, vms[2:3]); err != nil {
		t.Fatal(err)
	}
	s.Evict(vms[0].ID, "Eviction API: evicting")
	next(target.PlatformStopped, vms[0].Name, "node-1", "EvictionByEvictionAPI", func() {})
	_, err := tgt.(target.AgentDialer).DialAgent(t.Context(), vms[0])
	var stopped *target.StoppedError
	if !errors.As(err, &stopped) || !strings.Contains(stopped.Reason, "evicting") || stopped.At.IsZero() {
		t.Errorf("got %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A pool that is full and an image that does not exist are found at their step, with the words of the cluster.
func TestWordsOfTheCluster(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	config := simulated(t, s)
	config.Options["patience"] = "2s"
	full := config
	full.Pool = kubetest.FullClass
	tag := targettest.NewTag("run-1")
	node := []target.NodeConfig{{ID: "node-1"}}
	_, err := openAs(t, full, nil).Create(t.Context(), tag, specs(node, 1, 1<<20))
	wantCode(t, err, "kube-claim-pending", "not enough free space")
	config.Templates = map[string]string{"none": kubetest.MissingImage}
	list := specs(node, 1)
	list[0].Template, list[0].Name = "none", "OLTP-0009"
	tgt := openAs(t, config, authority(t))
	vms, err := tgt.Create(t.Context(), tag, list)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms), "kube-image", "not found")
	if pods := s.Objects("pods"); len(pods) > 0 {
		t.Errorf("a pod that did not start is left: %v", pods)
	}
}

// Keys and tokens are in Secrets and requests only.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	config := simulated(t, s)
	tgt := openAs(t, config, authority(t))
	powered(t, tgt, targettest.NewTag("run-1"), 1)
	inventory, err := tgt.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{fmt.Sprint(inventory)}
	for _, resource := range []string{"pods", "configmaps", "persistentvolumeclaims"} {
		texts = append(texts, fmt.Sprint(s.Objects(resource)))
	}
	key := ""
	for _, o := range s.Objects("secrets") {
		key = fmt.Sprint(o["data"].(kubetest.Object)["agent.key"])
	}
	token, err := os.ReadFile(config.Credentials["platform"].Secret.File)
	if err != nil || key == "" {
		t.Fatal(key, err)
	}
	for _, text := range texts {
		if strings.Contains(text, string(token)) || strings.Contains(text, key[:40]) || strings.Contains(text, "PRIVATE KEY") {
			t.Error("a secret is outside of a Secret")
		}
	}
}

// A watch that is refused for good ends what waits for it with the reason, not after the whole patience. A pod that was made is removed.
func TestRefusedWatch(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	tgt := openAs(t, simulated(t, s), authority(t))
	tag := targettest.NewTag("run-1")
	vms := powered(t, tgt, tag, 1)
	if err := tgt.(target.VMPower).PowerOffVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	s.SetFault(func(r *http.Request) (int, string) {
		if r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/pods") {
			return http.StatusForbidden, `pods is forbidden: User "bench" cannot watch resource "pods"`
		}
		return 0, ""
	})
	s.Forget()
	err := tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms)
	wantCode(t, err, api.CodeForbidden, "cannot watch resource")
	s.SetFault(nil) // its watch begins again some seconds later
	if err := tgt.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
	if left := s.Objects("pods"); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
