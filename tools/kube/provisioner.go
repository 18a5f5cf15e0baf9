package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// provisioner makes volumes for claims and removes those of released ones. The external-provisioner of the CSI project would need other
// versions of Kubernetes' modules; events and annotations are as it makes them.
type provisioner struct {
	client    kubernetes.Interface
	snapshots snapshots.Interface
	driver    *driver
	events    record.EventRecorder
}

const (
	annotationProvisioner = "volume.kubernetes.io/storage-provisioner" // set by Kubernetes on claims that wait for a provisioner
	annotationProvisioned = "pv.kubernetes.io/provisioned-by"
	retryFirst            = 200 * time.Millisecond
	retryLast             = 5 * time.Second
)

// provision returns when ctx ends.
func provision(ctx context.Context, kubeconfig string, d *driver) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = requestsASecond, requestsASecond
	p := &provisioner{driver: d}
	if p.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if p.snapshots, err = snapshots.NewForConfig(config); err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typed.EventSinkImpl{Interface: p.client.CoreV1().Events("")})
	p.events = broadcaster.NewRecorder(scheme.Scheme, core.EventSource{Component: driverName})
	factory := informers.NewSharedInformerFactory(p.client, 0)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims().Informer(), factory.Core().V1().PersistentVolumes().Informer()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryFirst, retryLast)
	queue := workqueue.NewTypedRateLimitingQueue[string](limiter)
	for kind, informer := range map[string]cache.SharedIndexInformer{"claim ": claims, "volume ": volumes} {
		add := func(o any) {
			if key, err := cache.MetaNamespaceKeyFunc(o); err == nil {
				queue.Add(kind + key)
			}
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	for {
		key, over := queue.Get()
		if over {
			return nil
		}
		var work func() error
		if name, ok := strings.CutPrefix(key, "claim "); ok {
			work = func() error { return p.claim(ctx, claims.GetStore(), name) }
		} else if name, ok := strings.CutPrefix(key, "volume "); ok {
			work = func() error { return p.release(ctx, volumes.GetStore(), name) }
		}
		if err := work(); err != nil {
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

// claim makes the volume of a claim that waits for this driver.
func (p *provisioner) claim(ctx context.Context, store cache.Store, key string) error {
	o, exists, err := store.GetByKey(key)
	if err != nil || !exists {
		return err
	}
	claim := o.(*core.PersistentVolumeClaim)
	if claim.Annotations[annotationProvisioner] != driverName || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	err = p.make(ctx, claim)
	if err != nil {
		p.events.Eventf(claim, core.EventTypeWarning, "ProvisioningFailed", "failed to provision volume with StorageClass %q: %v", *claim.Spec.StorageClassName, err)
	}
	return err
}

func (p *provisioner) make(ctx context.Context, claim *core.PersistentVolumeClaim) error {
	class, err := p.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, meta.GetOptions{})
	if err != nil {
		return err
	}
	name := "pvc-" + string(claim.UID)
	if _, err := p.client.CoreV1().PersistentVolumes().Get(ctx, name, meta.GetOptions{}); err == nil {
		return nil // the controller of Kubernetes binds it
	}
	source, err := p.source(ctx, claim)
	if err != nil {
		return err
	}
	request := claim.Spec.Resources.Requests[core.ResourceStorage]
	made, err := p.driver.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: request.Value()}, Parameters: class.Parameters, VolumeContentSource: source,
	})
	if err != nil {
		return err
	}
	volume := &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: name, Annotations: map[string]string{annotationProvisioned: driverName}},
		Spec: core.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, StorageClassName: class.Name, MountOptions: class.MountOptions,
			PersistentVolumeReclaimPolicy: *class.ReclaimPolicy,
			Capacity:                      core.ResourceList{core.ResourceStorage: *resource.NewQuantity(made.Volume.CapacityBytes, resource.BinarySI)},
			ClaimRef: &core.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: core.PersistentVolumeSource{CSI: &core.CSIPersistentVolumeSource{
				Driver: driverName, VolumeHandle: made.Volume.VolumeId, FSType: class.Parameters["csi.storage.k8s.io/fstype"],
			}},
		},
	}
	if _, err := p.client.CoreV1().PersistentVolumes().Create(ctx, volume, meta.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	p.events.Eventf(claim, core.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume %s", name)
	return nil
}

// source finds the snapshot or the volume that a claim starts from; nil for an empty volume.
func (p *provisioner) source(ctx context.Context, claim *core.PersistentVolumeClaim) (*csi.VolumeContentSource, error) {
	from := claim.Spec.DataSource
	if from == nil {
		return nil, nil
	}
	switch from.Kind {
	case "PersistentVolumeClaim":
		other, err := p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, from.Name, meta.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("error getting PVC %s (namespace %q) from api server: %w", from.Name, claim.Namespace, err)
		}
		if other.Spec.VolumeName == "" || other.Status.Phase != core.ClaimBound {
			return nil, fmt.Errorf("the PVC %s is not bound", from.Name)
		}
		volume, err := p.client.CoreV1().PersistentVolumes().Get(ctx, other.Spec.VolumeName, meta.GetOptions{})
		if err != nil {
			return nil, err
		}
		if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != driverName {
			return nil, fmt.Errorf("the volume of PVC %s belongs to another driver", from.Name)
		}
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: volume.Spec.CSI.VolumeHandle}}}, nil
	case "VolumeSnapshot":
		snapshot, err := p.snapshots.SnapshotV1().VolumeSnapshots(claim.Namespace).Get(ctx, from.Name, meta.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("error getting snapshot %s from api server: %w", from.Name, err)
		}
		if snapshot.Status == nil || snapshot.Status.ReadyToUse == nil || !*snapshot.Status.ReadyToUse || snapshot.Status.BoundVolumeSnapshotContentName == nil {
			return nil, fmt.Errorf("snapshot %s is not Ready", from.Name)
		}
		content, err := p.snapshots.SnapshotV1().VolumeSnapshotContents().Get(ctx, *snapshot.Status.BoundVolumeSnapshotContentName, meta.GetOptions{})
		if err != nil {
			return nil, err
		}
		if content.Spec.Driver != driverName || content.Status == nil || content.Status.SnapshotHandle == nil {
			return nil, errors.New("the snapshot's content has no handle of this driver")
		}
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: *content.Status.SnapshotHandle}}}, nil
	}
	return nil, fmt.Errorf("dataSource kind %q is not supported", from.Kind)
}

// release removes a volume whose claim is gone, unless its policy is to keep it.
func (p *provisioner) release(ctx context.Context, store cache.Store, name string) error {
	o, exists, err := store.GetByKey(name)
	if err != nil || !exists {
		return err
	}
	volume := o.(*core.PersistentVolume)
	if volume.Annotations[annotationProvisioned] != driverName || volume.Status.Phase != core.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != core.PersistentVolumeReclaimDelete {
		return nil
	}
	if _, err := p.driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume.Spec.CSI.VolumeHandle}); err != nil {
		p.events.Eventf(volume, core.EventTypeWarning, "VolumeFailedDelete", "%v", err)
		return err
	}
	err = p.client.CoreV1().PersistentVolumes().Delete(ctx, name, meta.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
