package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// Others lists the pods and claims of the namespace, and the records of VMs, without the tag. Other namespaces may be invisible.
func (c *cluster) Others(ctx context.Context, tag target.Tag) ([]target.Other, error) {
	if err := errors.Join(tag.Check(), c.usable(ctx)); err != nil {
		return nil, err
	}
	mark := tag.Mark()
	var all []target.Other
	known := map[string]bool{}
	records, err := c.records.All(ctx)
	if err != nil {
		return nil, err
	}
	for i := range records {
		r, ok := object.ReadRecord(&records[i].Object)
		if !ok || r.Mark == mark {
			continue
		}
		known[r.VM.ID] = true
		all = append(all, target.Other{Kind: target.OtherVM, Name: fmt.Sprintf("%s (%s)", r.VM.Name, r.VM.ID), NodeID: r.VM.NodeID, Why: target.WhyAnother})
	}
	podList, err := api.List[corev1.Pod](ctx, c.client, api.Pods, metav1.ListOptions{})
	if err != nil {
		return all, err
	}
	for i := range podList {
		p := &podList[i]
		if why := target.WhySkipped(object.MarkOf(p), mark); why != "" && !known[p.Labels[object.LabelVM]] {
			all = append(all, target.Other{Kind: target.OtherVM, Name: "pod " + p.Name, NodeID: p.Spec.NodeName, Why: why})
		}
	}
	claimList, err := api.List[corev1.PersistentVolumeClaim](ctx, c.client, api.Claims, metav1.ListOptions{})
	for i := range claimList {
		if why := target.WhySkipped(object.MarkOf(&claimList[i]), mark); why != "" {
			all = append(all, target.Other{Kind: target.OtherVolume, Name: claimList[i].Name, Why: why})
		}
	}
	slices.SortStableFunc(all, func(a, b target.Other) int { return strings.Compare(a.Kind+" "+a.Name, b.Kind+" "+b.Name) })
	return all, err
}
