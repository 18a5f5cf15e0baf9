package vsphere

import (
	"context"
	"fmt"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
	"github.com/braggdev/bragg/internal/wait"
)

// settleMax bounds the wait for clones of a dead program, settlePause is between two looks.
const (
	settleMax   = 30 * time.Minute
	settlePause = 2 * time.Second
)

// settle waits until no clone is under way that a dead program of this user began: its VM would appear after the list of
// VMs was made, and nothing would remove it. It is called once for each run that this program did not make VMs for.
func (t *site) settle(ctx context.Context, tag target.Tag) error {
	if err := t.usable(ctx); err != nil {
		return err
	}
	t.runs.add(tag)
	if t.made.has(tag.Mark()) {
		return nil
	}
	for until := time.Now().Add(settleMax); ; {
		running, err := t.cloning(ctx)
		if err != nil {
			return err
		}
		if running == "" {
			t.made.add(tag)
			return nil
		}
		if time.Now().After(until) {
			return &diag.Error{
				Code: "vsphere-cloning", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("a clone of %q is under way and does not end", running),
				Hint: "cancel it in the list of recent tasks of the vSphere Client",
			}
		}
		if err := wait.For(ctx, settlePause); err != nil {
			return err
		}
	}
}

// cloning returns the source of a clone of this user that is under way; "" without one.
func (t *site) cloning(ctx context.Context) (string, error) {
	if t.vc.ServiceContent.TaskManager == nil {
		return "", nil
	}
	var manager mo.TaskManager
	if err := t.vc.Collector().RetrieveOne(ctx, *t.vc.ServiceContent.TaskManager, []string{"recentTask"}, &manager); err != nil {
		return "", t.vc.Explain("read the recent tasks", err)
	}
	for _, ref := range manager.RecentTask {
		var one mo.Task
		err := t.vc.Collector().RetrieveOne(ctx, ref, []string{"info"}, &one)
		if vcenter.Gone(err) {
			continue
		}
		if err != nil {
			return "", t.vc.Explain("read the recent tasks", err)
		}
		ended := one.Info.State == types.TaskInfoStateSuccess || one.Info.State == types.TaskInfoStateError
		by, user := one.Info.Reason.(*types.TaskReasonUser)
		if !ended && (one.Info.Name == "CloneVM_Task" || one.Info.DescriptionId == "VirtualMachine.clone") && (!user || t.vc.IsUser(by.UserName)) {
			return one.Info.EntityName, nil
		}
	}
	return "", nil
}
