package object

import (
	"encoding/json"
	"maps"
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/trust"
)

// Settings are what the target file says of pods.
type Settings struct {
	PullSecret  string
	PullPolicy  corev1.PullPolicy
	Block       bool  // volumes are block devices in pods, not file systems
	Reserve     bool  // requests of pods are their limits
	User        int64 // of the agent
	Selector    map[string]string
	Tolerations []corev1.Toleration
}

// RootUser is the user to whom containers get block devices.
const RootUser = 0

const (
	IdentityDir   = "/etc/bragg" // of the agent's Secret in its container
	ConfigFile    = "agent.json" // in it
	certFile      = "agent.pem"
	keyFile       = "agent.key"
	authorityFile = "authority.pem"

	// AgentContainer is the name of the only container.
	AgentContainer = "agent"
	// GraceSeconds are between the signal that asks an agent to end and the one that kills it.
	GraceSeconds = 1
)

// Secret holds the identity of the agent and its configuration.
func (r Record) Secret(tag Owner, identity trust.Files) (*corev1.Secret, error) {
	c := agent.Config{
		VM: r.VM.Name, VCPUs: r.VCPUs, RAMBytes: r.RAMBytes, Listen: ":" + strconv.Itoa(address.AgentPort),
		MetricsListen: ":" + strconv.Itoa(address.MetricsPort),
		TLS: agent.TLS{
			Certificate: path.Join(IdentityDir, certFile), Key: path.Join(IdentityDir, keyFile), Authority: path.Join(IdentityDir, authorityFile),
		},
	}
	for _, d := range r.VM.Disks {
		if d.Path != "" {
			c.Files = append(c.Files, agent.File{Path: d.Path, SizeBytes: d.SizeBytes})
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{ObjectMeta: r.Meta(r.VM.ID, tag), Data: map[string][]byte{
		ConfigFile: text, certFile: identity.Certificate, keyFile: identity.Key, authorityFile: identity.Authority,
	}}, nil
}

// Pod describes the pod of a VM. The scheduler places it, on the node that the VM was created for.
func (r Record) Pod(tag Owner, s Settings, image string) *corev1.Pod {
	yes, no, user := true, false, s.User
	p := &corev1.Pod{ObjectMeta: r.Meta(r.VM.ID, tag)}
	grace := int64(GraceSeconds)
	p.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace, Hostname: Hostname(r.VM.Name),
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no, Tolerations: s.Tolerations, NodeSelector: maps.Clone(s.Selector),
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{r.VM.NodeID}}},
			}}},
		}},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser: &user, RunAsGroup: &user, FSGroup: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if user != RootUser {
		p.Spec.SecurityContext.RunAsNonRoot = &yes
	}
	if s.PullSecret != "" {
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: s.PullSecret}}
	}
	const ownerAndGroup = 0o440
	mode := int32(ownerAndGroup)
	c := corev1.Container{
		Name: AgentContainer, Image: image, ImagePullPolicy: s.PullPolicy, Args: []string{path.Join(IdentityDir, ConfigFile)},
		Ports:     []corev1.ContainerPort{{Name: "agent", ContainerPort: address.AgentPort}, {Name: "metrics", ContainerPort: address.MetricsPort}},
		Resources: r.resources(s.Reserve),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "identity", MountPath: IdentityDir, ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"}},
	}
	p.Spec.Volumes = []corev1.Volume{
		{Name: "identity", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: r.VM.ID, DefaultMode: &mode}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	for i, d := range r.VM.Disks {
		name := target.DiskName(i + 1)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: r.DiskName(i)},
		}})
		if r.Block {
			c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: name, DevicePath: d.Device})
		} else {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: diskDir(name)})
		}
	}
	p.Spec.Containers = []corev1.Container{c}
	return p
}

// What a pod requests where the target file does not reserve its limits.
const (
	cpuLeast    = "10m"
	memoryLeast = "32Mi"
)

func (r Record) resources(reserve bool) corev1.ResourceRequirements {
	limits := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(int64(r.VCPUs), resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(r.RAMBytes, resource.BinarySI),
	}
	if reserve {
		return corev1.ResourceRequirements{Limits: limits, Requests: limits}
	}
	return corev1.ResourceRequirements{Limits: limits, Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpuLeast), corev1.ResourceMemory: resource.MustParse(memoryLeast),
	}}
}
