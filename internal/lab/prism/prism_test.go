package prism_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/agentlink"
	"github.com/braggdev/bragg/internal/trust"
)

// TestMain is also the agent in VMs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "__agent" {
		os.Exit(agent.Command(context.Background(), os.Args[2:], agent.Program{
			Generators: map[string]load.Generator{}, Version: "test", Stderr: os.Stderr,
		}))
	}
	os.Exit(m.Run())
}

// rig is an emulator with a client of its API.
type rig struct {
	*testing.T
	*prism.Emulator
	http      *http.Client
	authority *trust.Authority
	links     *agentlink.Dialer
	addresses map[string]string
}

func newRig(t *testing.T, o prism.Options) *rig {
	t.Helper()
	e, err := prism.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	config, err := trust.Service{Name: "Prism", Fingerprint: e.Fingerprint}.ClientConfig("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	authority, err := trust.New("run", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, Emulator: e, http: &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, authority: authority, addresses: map[string]string{}}
	t.Cleanup(r.http.CloseIdleConnections)
	r.links = &agentlink.Dialer{Authority: authority, AddressOf: func(_ context.Context, vm target.VM) (string, error) {
		return r.addresses[vm.ID], nil
	}}
	t.Cleanup(r.links.Close)
	return r
}

// agentHere starts agents of this test's binary.
func agentHere(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, "__agent"}
}

type object = map[string]any

// call sends one request and returns the status and the decoded body.
func (r *rig) call(method, path string, body any, header ...string) (int, object, http.Header) {
	r.Helper()
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			r.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(r.Context(), method, r.URL+path, reader)
	if err != nil {
		r.Fatal(err)
	}
	request.SetBasicAuth(r.Credentials.User, r.Credentials.Password)
	request.Header.Set("NTNX-Request-Id", uuid.NewString())
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := r.http.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.Fatal(err)
	}
	out := object{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &out); err != nil {
			r.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return response.StatusCode, out, response.Header
}

// at follows keys and indices of a decoded body.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(object)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// do carries out a change, waits for its task and returns the ids of the entities that it affects.
func (r *rig) do(method, path string, body any, header ...string) []string {
	r.Helper()
	status, out, _ := r.call(method, path, body, header...)
	id, _ := at(out, "data", "extId").(string)
	if status != http.StatusAccepted || id == "" {
		r.Fatalf("%s %s: %d %v", method, path, status, out)
	}
	for {
		status, out, _ := r.call("GET", "/api/prism/v4.0/config/tasks/"+id, nil)
		switch at(out, "data", "status") {
		case "SUCCEEDED":
			var ids []string
			list, _ := at(out, "data", "entitiesAffected").([]any)
			for _, one := range list {
				ids = append(ids, at(one, "extId").(string))
			}
			return ids
		case "QUEUED", "RUNNING":
		default:
			r.Fatalf("%s %s: task: %d %v", method, path, status, out)
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-r.Context().Done():
			r.Fatal("canceled")
		}
	}
}

// etag reads a VM and returns its ETag as a header.
func (r *rig) etag(vm string) []string {
	r.Helper()
	status, out, header := r.call("GET", vms+"/"+vm, nil)
	if status != http.StatusOK || header.Get("ETag") == "" {
		r.Fatalf("read VM: %d %v", status, out)
	}
	return []string{"If-Match", header.Get("ETag")}
}

func (r *rig) act(vm, action string, body any) {
	r.Helper()
	r.do("POST", vms+"/"+vm+"/$actions/"+action, body, r.etag(vm)...)
}

func (r *rig) vm(id string) object {
	r.Helper()
	_, out, _ := r.call("GET", vms+"/"+id, nil)
	vm, _ := out["data"].(object)
	return vm
}

const vms = "/api/vmm/v4.0/ahv/config/vms"

// create makes a VM with an agent, a disk of an image and a data disk.
func (r *rig) create(name, imageID string) string {
	r.Helper()
	return r.do("POST", vms, r.whole(name, imageID))[0]
}

// whole is the request for a VM with an agent, a disk of an image and a data disk.
func (r *rig) whole(name, imageID string) object {
	r.Helper()
	identity, err := r.authority.Agent(name)
	if err != nil {
		r.Fatal(err)
	}
	user, meta, _, err := image.CloudInit(image.Guest{InstanceID: name, VM: name, Listen: ":7401", MetricsListen: ":7402", VCPUs: 1, RAMBytes: 1 << 29, Identity: identity})
	if err != nil {
		r.Fatal(err)
	}
	_, clusters, _ := r.call("GET", "/api/clustermgmt/v4.0/config/clusters?$filter=name+eq+'lab'", nil)
	_, subnets, _ := r.call("GET", "/api/networking/v4.0/config/subnets", nil)
	return object{
		"name": name, "numSockets": 1, "numCoresPerSocket": 2, "memorySizeBytes": 1 << 30, "cluster": object{"extId": at(clusters, "data", 0, "extId")},
		"guestCustomization": object{"config": object{
			"$objectType": "vmm.v4.ahv.config.CloudInit", "datasourceType": "CONFIG_DRIVE_V2", "metadata": base64.StdEncoding.EncodeToString(meta),
			"cloudInitScript": object{"$objectType": "vmm.v4.ahv.config.Userdata", "value": base64.StdEncoding.EncodeToString(user)},
		}},
		"disks": []object{
			{"diskAddress": object{"busType": "SCSI", "index": 0}, "backingInfo": object{
				"$objectType": "vmm.v4.ahv.config.VmDisk",
				"dataSource":  object{"reference": object{"$objectType": "vmm.v4.ahv.config.ImageReference", "imageExtId": imageID}},
			}},
			{"diskAddress": object{"busType": "SCSI", "index": 1}, "backingInfo": object{
				"$objectType": "vmm.v4.ahv.config.VmDisk", "diskSizeBytes": 4 << 20,
			}},
		},
		"nics": []object{{"networkInfo": object{"subnet": object{"extId": at(subnets, "data", 0, "extId")}}}},
	}
}

// greet returns the identity of the process of the agent of a VM.
func (r *rig) greet(id, name string) string {
	r.Helper()
	r.addresses[id], _ = at(r.vm(id), "nics", 0, "networkInfo", "ipv4Info", "learnedIpAddresses", 0, "value").(string)
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	conn, err := r.links.DialAgent(ctx, target.VM{ID: id, Name: name})
	if err != nil {
		r.Fatalf("%v\n%s", err, r.Machine.Console(id))
	}
	defer conn.Close()
	hello, err := client.New(conn, client.Options{}).Hello(ctx)
	if err != nil {
		r.Fatal(err)
	}
	if hello.VM != name {
		r.Fatalf("agent of %q answers for %q", hello.VM, name)
	}
	if machine := image.MachineID(name); os.Geteuid() == 0 && hello.MachineID != machine {
		r.Errorf("the machine-id of %q is %q, want %q of its user data", name, hello.MachineID, machine)
	}
	return hello.Boot
}

// until waits for a condition.
func (r *rig) until(what string, met func() bool) {
	r.Helper()
	for end := time.Now().Add(20 * time.Second); !met(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatal("not met: " + what)
		}
	}
}

func TestVMsAreAgents(t *testing.T) {
	r := newRig(t, prism.Options{Agent: agentHere(t)})
	img, err := r.AddImage("debian", strings.NewReader("bytes of an image"))
	if err != nil {
		t.Fatal(err)
	}
	id := r.create("OLTP-0001", img)
	if host := at(r.vm(id), "host"); host != nil {
		t.Errorf("a VM that is off has the host %v", host)
	}
	r.act(id, "power-on", nil)
	first := r.greet(id, "OLTP-0001")
	if got := at(r.vm(id), "powerState"); got != "ON" {
		t.Errorf("power is %v", got)
	}
	r.act(id, "power-cycle", nil)
	if second := r.greet(id, "OLTP-0001"); second == first {
		t.Error("the agent outlived a power cycle")
	}
	r.act(id, "shutdown", nil)
	if running := r.Machine.Running(); len(running) > 0 {
		t.Errorf("VMs that are off run: %q", running)
	}
	data := at(r.vm(id), "disks", 1, "extId").(string)
	if err := os.WriteFile(r.DiskPath(data), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.act(id, "clone", object{"name": "OLTP-0002"})
	_, clones, _ := r.call("GET", vms+"?$filter=name+eq+'OLTP-0002'", nil)
	copied, err := os.ReadFile(r.DiskPath(at(clones, "data", 0, "disks", 1, "extId").(string)))
	if err != nil || !bytes.HasPrefix(copied, []byte("kept")) {
		t.Errorf("the clone's disk: %q, %v", copied[:min(8, len(copied))], err)
	}
	r.do("DELETE", vms+"/"+id, nil, r.etag(id)...)
	if status, _, _ := r.call("GET", vms+"/"+id, nil); status != http.StatusNotFound {
		t.Errorf("a deleted VM: %d", status)
	}
	if _, err := os.Stat(r.DiskPath(data)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a deleted VM's disk: %v", err)
	}
}

// A host that loses its power takes its VMs with it; HA starts them on another host.
func TestHA(t *testing.T) {
	r := newRig(t, prism.Options{Agent: agentHere(t), State: state.Options{HADelay: 20 * time.Millisecond}})
	img, err := r.AddImage("debian", strings.NewReader("bytes of an image"))
	if err != nil {
		t.Fatal(err)
	}
	id := r.create("OLTP-0001", img)
	r.act(id, "power-on", nil)
	first := r.greet(id, "OLTP-0001")
	host := at(r.vm(id), "host", "extId").(string)
	if err := r.CutHost(host); err != nil {
		t.Fatal(err)
	}
	r.until("HA restarts it", func() bool { return at(r.vm(id), "host", "extId") != host && at(r.vm(id), "powerState") == "ON" })
	if r.greet(id, "OLTP-0001") == first {
		t.Error("the agent outlived its host")
	}
	_, events, _ := r.call("GET", "/api/monitoring/v4.0/serviceability/events", nil)
	if text := fmt.Sprint(events); !strings.Contains(text, "VmHaRestart") {
		t.Errorf("events: %s", text)
	}
	if err := r.RestoreHost(host); err != nil {
		t.Fatal(err)
	}
	_, hosts, _ := r.call("GET", "/api/clustermgmt/v4.0/config/hosts", nil)
	for i := range 3 {
		if got := at(hosts, "data", i, "hypervisor", "acropolisConnectionState"); got != "CONNECTED" {
			t.Errorf("host %d is %v", i, got)
		}
	}
}

// Requests that Prism cannot read, or that exceed its limits, are refused before a task begins.
func TestRefusals(t *testing.T) {
	r := newRig(t, prism.Options{})
	img, err := r.AddImage("debian", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	id := r.create("db", img)
	untyped := func(part func(spec object) any) object {
		spec := r.whole("other", img)
		delete(part(spec).(object), "$objectType")
		return spec
	}
	disk := func(spec object, i int) object { return spec["disks"].([]object)[i]["backingInfo"].(object) }
	for what, c := range map[string]struct {
		path string
		body object
	}{
		"disks of no type":   {vms, untyped(func(o object) any { return disk(o, 1) })},
		"images of no type":  {vms, untyped(func(o object) any { return at(disk(o, 0), "dataSource", "reference") })},
		"guests of no type":  {vms, untyped(func(o object) any { return at(o, "guestCustomization", "config") })},
		"scripts of no type": {vms, untyped(func(o object) any { return at(o, "guestCustomization", "config", "cloudInitScript") })},
		"long names":         {vms, r.whole(strings.Repeat("n", 81), img)},
		"no ETag":            {vms + "/" + id + "/$actions/power-on", nil},
	} {
		if status, out, _ := r.call("POST", c.path, c.body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", what, status, out)
		}
	}
	if r.count("other") != 0 {
		t.Errorf("%d VMs were made", r.count("other"))
	}
}
