package prism_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// spec is the body of a request for a VM without disks.
func (r *rig) spec(name string) object {
	var cluster string
	r.State.Read(func(d *state.Data) { cluster = d.Cluster.ID })
	return object{"name": name, "memorySizeBytes": 1 << 30, "cluster": object{"extId": cluster}}
}

func (r *rig) count(name string) int {
	r.Helper()
	_, out, _ := r.call("GET", vms+"?$filter=name+eq+'"+name+"'", nil)
	total, _ := at(out, "metadata", "totalAvailableResults").(float64)
	return int(total)
}

// A request that comes again with its id gets the answer of the first, and is not carried out again.
func TestRequestIDs(t *testing.T) {
	r := newRig(t, prism.Options{})
	id := uuid.NewString()
	var tasks []any
	for range 3 {
		status, out, _ := r.call("POST", vms, r.spec("db"), "NTNX-Request-Id", id)
		if status != http.StatusAccepted {
			t.Fatalf("%d %v", status, out)
		}
		tasks = append(tasks, at(out, "data", "extId"))
	}
	if tasks[0] != tasks[1] || tasks[0] != tasks[2] {
		t.Errorf("tasks are %v", tasks)
	}
	if status, _, _ := r.call("POST", vms, r.spec("other"), "NTNX-Request-Id", id); status != http.StatusConflict {
		t.Errorf("another request with the same id: %d", status)
	}
	if status, out, _ := r.call("POST", vms, r.spec("other"), "NTNX-Request-Id", ""); status != http.StatusBadRequest || at(out, "data", "error", 0, "errorGroup") != "INVALID_INPUT" {
		t.Errorf("a request without an id: %d %v", status, out)
	}
	r.until("the VM is there", func() bool { return r.count("db") == 1 })
}

func TestFaultsOfRequests(t *testing.T) {
	rules, err := faults.Read(strings.NewReader(`
- {request: "POST /api/vmm/*/ahv/config/vms", body: busy, status: 429, retry_after: 2s, times: 1}
- {request: "POST /api/vmm/*/ahv/config/vms", body: lost, drop: true, times: 1}
- {request: "GET /api/clustermgmt/*/config/hosts", skip: 1, status: 503}
`))
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, prism.Options{Faults: rules})
	if status, _, header := r.call("POST", vms, r.spec("busy")); status != http.StatusTooManyRequests || header.Get("Retry-After") != "2" {
		t.Errorf("%d, retry after %q", status, header.Get("Retry-After"))
	}
	r.do("POST", vms, r.spec("busy"))

	id := uuid.NewString()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+vms, strings.NewReader(`{"name":"lost","memorySizeBytes":1073741824,"cluster":{"extId":"`+
		r.spec("")["cluster"].(object)["extId"].(string)+`"}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(r.Credentials.User, r.Credentials.Password)
	request.Header.Set("NTNX-Request-Id", id)
	if response, err := r.http.Do(request); err == nil {
		_ = response.Body.Close()
		t.Errorf("the connection was not cut: %s", response.Status)
	}
	r.until("it was carried out all the same", func() bool { return r.count("lost") == 1 })

	for i, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		if status, _, _ := r.call("GET", "/api/clustermgmt/v4.0/config/hosts", nil); status != want {
			t.Errorf("request %d: %d, want %d", i, status, want)
		}
	}
	for _, text := range []string{"- {request: x}", "- {task: a, status: 500}", "- {}", "- {request: GET /, nonsense: 1}", "- {request: GET /, status: 200}",
		"- {task: a, cut_host: x}"} {
		if _, err := faults.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: accepted", text)
		}
	}
}

func TestFaultsOfTasks(t *testing.T) {
	r := newRig(t, prism.Options{Faults: []faults.Rule{
		{Task: "VmCreate", Name: "fails", After: time.Millisecond, Fail: "internal error"},
		{Task: "VmCreate", Name: "half", Fail: "internal error", FailAfter: true},
		{Task: "VmCreate", Name: "lost*", Lose: true},
	}})
	for name, want := range map[string]struct {
		status string
		vms    int
	}{"fails": {"FAILED", 0}, "half": {"FAILED", 1}, "lost-1": {"", 1}, "fine": {"SUCCEEDED", 1}} {
		_, out, _ := r.call("POST", vms, r.spec(name))
		task, _ := at(out, "data", "extId").(string)
		var got object
		r.until("the task of "+name, func() bool {
			status, out, _ := r.call("GET", "/api/prism/v4.0/config/tasks/"+task, nil)
			if status == http.StatusNotFound {
				got = object{"status": ""}
				return true
			}
			got, _ = out["data"].(object)
			return got["status"] == "FAILED" || got["status"] == "SUCCEEDED" && name != "lost-1"
		})
		if got["status"] != want.status || r.count(name) != want.vms {
			t.Errorf("%s: %v, %d VMs", name, got, r.count(name))
		}
		if want.status == "FAILED" && at(got, "errorMessages", 0, "message") != "internal error" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Sessions and API keys are accepted in place of a password, and a session that has expired is not.
func TestLogins(t *testing.T) {
	r := newRig(t, prism.Options{Credentials: rest.Credentials{APIKey: "key"}})
	get := func(header ...string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/api/clustermgmt/v4.0/config/clusters", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		response, err := r.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
		return response.StatusCode, cookie
	}
	_, _, header := r.call("GET", "/api/clustermgmt/v4.0/config/clusters", nil)
	session, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	for _, c := range []struct {
		header []string
		want   int
	}{
		{nil, 401}, {[]string{"Cookie", session}, 200}, {[]string{"X-ntnx-api-key", "key"}, 200}, {[]string{"X-ntnx-api-key", "other"}, 401},
		{[]string{"Cookie", session + "0"}, 401},
	} {
		if got, _ := get(c.header...); got != c.want {
			t.Errorf("%q: %d, want %d", c.header, got, c.want)
		}
	}
	r.Gate.ExpireSessions()
	if got, _ := get("Cookie", session); got != 401 {
		t.Errorf("an expired session: %d", got)
	}
}

// Recovery points hold the contents of disks: a VM returns to them, and new VMs begin with them.
func TestRecoveryPoints(t *testing.T) {
	r := newRig(t, prism.Options{})
	img, err := r.AddImage("debian", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	id := r.create("db", img)
	write := func(text string) {
		t.Helper()
		writeAt(t, r.DiskPath(at(r.vm(id), "disks", 1, "extId").(string)), text)
	}
	read := func(vm string) string {
		t.Helper()
		return readAt(t, r.DiskPath(at(r.vm(vm), "disks", 1, "extId").(string)), 5)
	}
	write("first")
	const path = "/api/dataprotection/v4.0/config/recovery-points"
	r.do("POST", path, object{"name": "one", "vmRecoveryPoints": []object{{"vmExtId": id}}})
	write("later")
	_, points, _ := r.call("GET", path, nil)
	r.act(id, "revert", object{"vmRecoveryPointExtId": at(points, "data", 0, "vmRecoveryPoints", 0, "extId")})
	if got := read(id); got != "first" {
		t.Errorf("after revert: %q", got)
	}
	write("other")
	restored := r.do("POST", path+"/"+at(points, "data", 0, "extId").(string)+"/$actions/restore", object{})
	if got := read(restored[0]); got != "first" || restored[0] == id {
		t.Errorf("restored: %q", got)
	}
	if got := read(id); got != "other" {
		t.Errorf("the VM itself: %q", got)
	}
}

// A script changes the cluster behind a client's back.
func TestFaultsOfTheCluster(t *testing.T) {
	r := newRig(t, prism.Options{State: state.Options{HADelay: time.Millisecond}})
	r.do("POST", vms, r.spec("db"))
	_, out, _ := r.call("GET", vms, nil)
	id := at(out, "data", 0, "extId").(string)
	r.act(id, "power-on", nil)
	before := at(r.vm(id), "host", "extId")
	trigger := func(rule faults.Rule) {
		rule.Request, rule.Times = "GET /api/networking/*/config/subnets", 1
		r.Faults.Clear()
		r.Faults.Add(rule)
		r.call("GET", "/api/networking/v4.0/config/subnets", nil)
	}
	trigger(faults.Rule{MoveVM: "d*"})
	second := at(r.vm(id), "host", "extId")
	if second == before || second == nil {
		t.Errorf("the VM runs on %v, and ran on %v", second, before)
	}
	var name string
	r.State.Read(func(d *state.Data) { name = d.Host(second.(string)).Name })
	trigger(faults.Rule{CutHost: name})
	r.until("HA restarts it", func() bool { vm := r.vm(id); return vm["powerState"] == "ON" && at(vm, "host", "extId") != second })
	trigger(faults.Rule{RestoreHost: name, ForeignVM: "db"})
	if r.count("db") != 2 {
		t.Errorf("%d VMs of the name", r.count("db"))
	}
	_, alerts, _ := r.call("GET", "/api/monitoring/v4.0/serviceability/alerts", nil)
	if at(alerts, "data", 0, "alertType") != "HostDown" || at(alerts, "data", 0, "isResolved") != true {
		t.Errorf("alerts: %v", alerts)
	}
}

// Addresses of deleted VMs are used again, at last.
func TestAddressesReturn(t *testing.T) {
	r := newRig(t, prism.Options{State: state.Options{Network: netip.MustParsePrefix("10.42.0.0/24")}})
	var cluster string
	r.State.Read(func(d *state.Data) { cluster = d.Cluster.ID })
	seen := map[string]int{}
	for range 300 {
		task, id, err := r.State.CreateVM(state.VMSpec{
			Name: "short", Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, MemoryBytes: 64 << 20, ClusterID: cluster, NICs: []state.NICSpec{{}},
		})
		if err == nil {
			err = r.State.Await(task)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.State.Read(func(d *state.Data) { seen[d.VM(id).NICs[0].Address]++ })
		task, err = r.State.DeleteVM(id, -1)
		if err == nil {
			err = r.State.Await(task)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) < 200 || len(seen) > 205 {
		t.Errorf("%d addresses", len(seen))
	}
}
