package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/textio"
)

// classesMax bounds the storage classes that a message names.
const classesMax = 8

// premises returns which objects of the target file the cluster does not have. What the user may not see is not missing.
func (t *Target) premises(ctx context.Context) error {
	var faults []error
	if _, err := t.client.Raw(ctx, http.MethodGet, "/api/v1/namespaces/"+t.client.Namespace, nil); api.NotFound(err) {
		faults = append(faults, api.MissingNamespace(t.client.Namespace))
	}
	list, err := api.List[storagev1.StorageClass](ctx, t.client, api.StorageClasses, metav1.ListOptions{})
	class := t.cluster.settings.class
	if err == nil && class != "" && !slices.ContainsFunc(list, func(s storagev1.StorageClass) bool { return s.Name == class }) {
		faults = append(faults, missingClass(class, list))
	}
	return errors.Join(faults...)
}

func missingClass(class string, list []storagev1.StorageClass) error {
	e := &diag.Error{
		Code: "kube-storage-class", Exit: diag.ExitData, Message: fmt.Sprintf("there is no storage class %q", class),
		Hint: "pool: in the target file names it; kubectl get storageclass lists them",
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	if len(names) > 0 {
		e.Message += " (found: " + textio.Few(names, classesMax) + ")"
	}
	if near := diag.Nearest(class, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}
