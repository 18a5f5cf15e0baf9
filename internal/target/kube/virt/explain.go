package virt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// createdBy is the label of the pods of an instance: its UID.
const createdBy = "kubevirt.io/created-by"

// launchers lists the pods of an instance: two during a migration.
func (r *Runner) launchers(ctx context.Context, uid string) ([]corev1.Pod, error) {
	return api.List[corev1.Pod](ctx, r.site.Client, api.Pods, metav1.ListOptions{LabelSelector: createdBy + "=" + uid})
}

// explain adds the words of the cluster to why a VM does not run: conditions and events of the VM, its instance and its pods.
func (r *Runner) explain(ctx context.Context, rec object.Record, o *api.Seen[instance], why string) error {
	e := &diag.Error{Code: "kube-vm", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("vm %q does not run: %s", rec.VM.ID, why)}
	e.Hint = fmt.Sprintf("kubectl -n %s describe vm,vmi shows more while they exist", r.site.Client.Namespace)
	var words []string
	add := func(text string) {
		if text != "" && !strings.Contains(e.Message, text) && !slices.Contains(words, text) {
			words = append(words, text)
		}
	}
	status := r.status(rec.VM.ID)
	scheduled := true
	if one, ok := r.machines.Get(rec.VM.ID); ok {
		if one.Object.Status != nil {
			failed(one.Object.Status.Conditions, add)
		}
		if o == nil {
			add(r.site.Events(ctx, one.UID))
		}
	}
	if o != nil {
		failed(o.Object.Status.Conditions, add)
		if c := find(o.Object.Status.Conditions, conditionScheduled); c != nil && c.Status == "False" {
			scheduled = false
		}
		add(r.site.Events(ctx, o.UID))
		pods, _ := r.launchers(ctx, o.UID)
		for _, p := range pods {
			add(r.site.Events(ctx, string(p.UID)))
		}
	}
	if len(words) > 0 {
		e.Message += "; " + strings.Join(words, "; ")
	}
	switch {
	case !scheduled || status == statusUnschedulable:
		e.Code, e.Hint = "kube-unschedulable", "the node of the VM must have room: smaller VMs, or reserve: off in the options of the target file"
	case status == statusPull || status == statusPullBackOff:
		e.Code, e.Hint = "kube-image", "options image, image_pull_secret and image_pull_policy of the target file select the image"
	}
	return e
}

// failed passes on what conditions say is wrong.
func failed(list []condition, add func(string)) {
	for _, c := range list {
		bad := c.Status == "False" && c.Type != conditionMigratable || c.Status == "True" && (c.Type == "Failure" || c.Type == "Paused")
		if bad && c.Message != "" {
			add(fmt.Sprintf("%s: %s", firstOf(c.Reason, c.Type), api.Words(c.Message)))
		}
	}
}
