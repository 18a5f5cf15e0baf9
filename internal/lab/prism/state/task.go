package state

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Status of a task.
type Status string

// States of tasks.
const (
	Queued    Status = "QUEUED"
	Running   Status = "RUNNING"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
)

// Entity is a reference with the relation that v4 names, such as "vmm:ahv:config:vm".
type Entity struct{ ID, Rel, Name string }

// Relations of entities.
const (
	RelVM        = "vmm:ahv:config:vm"
	RelImage     = "vmm:content:image"
	RelHost      = "clustermgmt:config:host"
	RelContainer = "clustermgmt:config:storage-container"
	RelPoint     = "dataprotection:config:recovery-point"
	RelPointVM   = "vmm:ahv:config:vm-recovery-point"
	RelPolicy    = "vmm:ahv:policies:vm-host-affinity-policy"
)

// Task is an operation that takes time.
type Task struct {
	ID                                   string // a UUID; v4 adds the prefix of its service
	Operation, Description               string
	Status                               Status
	Entities                             []Entity
	Created, Started, Completed, Updated time.Time
	Expected                             time.Duration // of Running
	Error                                string
	lose                                 bool
}

// tasksMax bounds how many tasks are remembered.
const tasksMax = 5000

// Progress is in percent.
func (t *Task) Progress(now time.Time) int {
	switch {
	case t.Status == Succeeded:
		return 100
	case t.Status == Queued || t.Expected <= 0:
		return 0
	}
	return int(min(99, 100*now.Sub(t.Started)/t.Expected))
}

// Task returns a task by its UUID, nil if there is none.
func (d *Data) Task(id string) *Task { return find(d.Tasks, id, func(t *Task) string { return t.ID }) }

// job is what a task does.
type job struct {
	operation   string // "VmCreate"
	description string
	entities    []Entity
	do          func() error
}

// begin starts a task and returns its id. The job runs at the end of its time.
func (p *base) begin(j job) (string, error) {
	name := ""
	if len(j.entities) > 0 {
		name = j.entities[0].Name
	}
	timing := p.options.Timing(j.operation, name)
	t := &Task{
		ID: NewID(), Operation: j.operation, Description: j.description, Status: Queued, Entities: j.entities, Created: p.Now(),
		Expected: timing.Running, lose: timing.Lose,
	}
	t.Updated = t.Created
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", refuse(Busy, "the cluster is shutting down")
	}
	p.data.Tasks = append(p.data.Tasks, t)
	if over := len(p.data.Tasks) - tasksMax; over > 0 {
		p.data.Tasks = slices.Delete(p.data.Tasks, 0, over)
	}
	p.work.Go(func() { p.run(t, j, timing) })
	return t.ID, nil
}

func (p *base) run(t *Task, j job, timing Timing) {
	if !p.pause(timing.Queued) {
		return
	}
	p.step(t, func() { t.Status, t.Started = Running, p.Now() })
	if !p.pause(timing.Running) {
		return
	}
	var err error
	if timing.Fail == "" || timing.FailAfter {
		err = j.do()
	}
	if timing.Fail != "" {
		err = fmt.Errorf("%s", timing.Fail)
	}
	p.step(t, func() {
		t.Status, t.Completed = Succeeded, p.Now()
		if err != nil {
			t.Status, t.Error = Failed, err.Error()
		}
		if t.lose {
			p.data.Tasks = slices.DeleteFunc(p.data.Tasks, func(o *Task) bool { return o == t })
		}
	})
}

func (p *base) step(t *Task, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	t.Updated = p.Now()
}

// Await returns the outcome of a task, for tests and for operations without a task of their own.
func (p *base) Await(id string) error {
	for {
		var done bool
		var fault string
		p.Read(func(d *Data) {
			t := d.Task(id)
			done = t == nil || t.Status == Succeeded || t.Status == Failed
			if t != nil {
				fault = t.Error
			}
		})
		if done {
			if fault = strings.TrimSpace(fault); fault != "" {
				return fmt.Errorf("%s", fault)
			}
			return nil
		}
		if !p.pause(2 * time.Millisecond) {
			return p.ctx.Err()
		}
	}
}
