package vsphere

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

// lateAfter is how long tasks run before they fail, and lateLooksMax how often one may be looked at until then.
const (
	lateAfter    = 40 * time.Second
	lateLooksMax = 40
)

// late carries requests to a vCenter without a network, on which simulated time would not pass. One request at a time: a task of the simulator
// sleeps while it holds a mutex, and no time passes while another request waits for that. So the next one waits until the task is through.
type late struct {
	*vcsim.Server
	one chan struct{}

	method string // its tasks run for a long time and fail; "": none
	tasks  []*lateTask
}

type lateTask struct {
	*mo.Task
	begun time.Time
	looks int
}

const taskMax = 100 * time.Millisecond

func (l *late) RoundTrip(q *http.Request) (*http.Response, error) {
	l.one <- struct{}{}
	defer func() { <-l.one }()
	defer time.Sleep(taskMax)
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	for _, task := range l.tasks {
		if bytes.Contains(body, []byte(">"+task.Self.Value+"<")) {
			task.look()
		}
	}
	begins := l.method != "" && bytes.Contains(body, []byte("<"+l.method))
	w := httptest.NewRecorder()
	if !begins || l.method == "CloneVM_Task" { // real clones make the VM first, and then find that its disks do not fit
		inner := q.Clone(q.Context())
		inner.Body = io.NopCloser(bytes.NewReader(body))
		l.Handler().ServeHTTP(w, inner)
	}
	if begins {
		w = httptest.NewRecorder()
		fmt.Fprintf(w, `<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><%[1]sResponse xmlns="urn:vim25">`+
			`<returnval type="Task">%[2]s</returnval></%[1]sResponse></Body></Envelope>`, l.method, l.begin())
	}
	return w.Result(), nil
}

// begin registers a task.
func (l *late) begin() string {
	task := &lateTask{Task: &mo.Task{}, begun: time.Now()}
	task.Self = types.ManagedObjectReference{Type: "Task", Value: fmt.Sprintf("task-late-%d", len(l.tasks))}
	task.Info = types.TaskInfo{Key: task.Self.Value, Task: task.Self, State: types.TaskInfoStateRunning}
	l.Model.Map().Put(task.Task)
	l.tasks = append(l.tasks, task)
	return task.Self.Value
}

// look lets a task fail whose time has come.
func (t *lateTask) look() {
	if t.looks++; time.Since(t.begun) >= lateAfter {
		t.Info.State = types.TaskInfoStateError
		t.Info.Error = &types.LocalizedMethodFault{
			Fault: &types.FileFault{File: "[LocalDS_0] disk.vmdk"}, LocalizedMessage: "Insufficient space on datastore LocalDS_0",
		}
	}
}

// A task that runs for 40 seconds and then fails: the error has the message of its fault, it was looked at seldom, and nothing is left behind.
func TestTasksThatFailLate(t *testing.T) {
	server, err := vcsim.Start(vcsim.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	r := rigOf(t, server)
	tag := targettest.NewTag("run-1")
	for _, c := range []struct {
		method string
		vms    int // there are before and afterwards
		act    func(ctx context.Context, v target.Target, vms []target.VM, more []target.VMSpec) error
	}{
		{"CloneVM_Task", 0, func(ctx context.Context, v target.Target, _ []target.VM, more []target.VMSpec) error {
			_, err := v.Create(ctx, tag, more)
			return err
		}},
		{"CloneVM_Task", 1, func(ctx context.Context, v target.Target, vms []target.VM, more []target.VMSpec) error {
			_, err := v.(target.Cloner).CloneVM(ctx, tag, vms[0], more, false)
			return err
		}},
		{"RelocateVM_Task", 1, func(ctx context.Context, v target.Target, vms []target.VM, more []target.VMSpec) error {
			return v.(target.Migrator).MigrateVMs(ctx, tag, vms, more[0].NodeID)
		}},
		{"RelocateVM_Task", 1, func(ctx context.Context, v target.Target, vms []target.VM, _ []target.VMSpec) error {
			return v.(target.DatastoreRelocator).RelocateVMs(ctx, tag, vms, "LocalDS_1")
		}},
		{"CreateSnapshot_Task", 1, func(ctx context.Context, v target.Target, vms []target.VM, _ []target.VMSpec) error {
			return v.(target.Snapshotter).SnapshotVMs(ctx, tag, vms, "before")
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &late{Server: server, one: make(chan struct{}, 1)}
			v := r.openBy(t, l)
			more := lateSpecs(t, v)
			vms, err := v.Create(t.Context(), tag, more[:c.vms])
			if err != nil {
				t.Fatal(err)
			}
			l.method = c.method
			began := time.Now()
			err = c.act(t.Context(), v, vms, more[c.vms:])
			l.method = ""
			if took := time.Since(began); took < lateAfter || took > lateAfter+5*time.Second {
				t.Errorf("%s: it ended after %v", c.method, took)
			}
			if diag.ExitCode(err) != diag.ExitUnavailable || !strings.Contains(diag.Sentence(err), "Insufficient space on datastore LocalDS_0 (FileFault)") {
				t.Errorf("%s: %d, %q", c.method, diag.ExitCode(err), diag.Sentence(err))
			}
			t.Log(diag.Sentence(err))
			if len(l.tasks) == 0 {
				t.Errorf("%s: no task", c.method)
			}
			for _, task := range l.tasks {
				if task.looks == 0 || task.looks > lateLooksMax {
					t.Errorf("%s: %s was looked at %d times", c.method, task.Self.Value, task.looks)
				}
			}
			if left := r.leftovers(t); len(left) != c.vms {
				t.Errorf("%s: left: %q", c.method, left)
			}
			if err := v.Delete(t.Context(), tag, vms); err != nil {
				t.Error(err)
			}
		})
	}
}

func lateSpecs(t *testing.T, v target.Target) []target.VMSpec {
	t.Helper()
	inventory, err := v.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	specs := make([]target.VMSpec, 3)
	for i := range specs {
		specs[i] = target.VMSpec{
			Name: fmt.Sprintf("OLTP-%04d", i+1), Group: "OLTP", Ordinal: i, Template: "linux", VCPUs: 1, RAMBytes: 512 << 20,
			DiskBytes: []int64{4 << 20}, NodeID: inventory.Nodes[i].ID,
		}
	}
	return specs
}

// openBy opens the target over another transport than a network.
func (r *rig) openBy(t *testing.T, transport http.RoundTripper) target.Target {
	t.Helper()
	s, err := readSettings(r.config)
	if err != nil {
		t.Fatal(err)
	}
	vc, err := vcenter.Dial(t.Context(), vcenter.Options{Endpoint: r.Endpoint, User: vcsim.User, Password: vcsim.Password, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	v, err := prepare(t.Context(), vc, r.config, s, target.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}
