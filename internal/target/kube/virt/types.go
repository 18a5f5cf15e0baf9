package virt

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The fields of kubevirt.io/v1 that this program writes and reads.
type (
	machine struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              machineSpec    `json:"spec"`
		Status            *machineStatus `json:"status,omitempty"`
	}
	machineSpec struct {
		RunStrategy string   `json:"runStrategy"`
		Template    template `json:"template"`
	}
	machineStatus struct {
		Printable  string      `json:"printableStatus,omitempty"`
		Conditions []condition `json:"conditions,omitempty"`
	}
	template struct {
		Metadata templateMeta `json:"metadata"`
		Spec     instanceSpec `json:"spec"`
	}
	templateMeta struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}

	instance struct {
		metav1.ObjectMeta `json:"metadata"`
		Status            instanceStatus `json:"status"`
	}
	instanceStatus struct {
		Phase      string       `json:"phase"`
		Reason     string       `json:"reason"`
		Node       string       `json:"nodeName"`
		Conditions []condition  `json:"conditions"`
		Interfaces []seenLink   `json:"interfaces"`
		Migration  *lastMove    `json:"migrationState"`
		Changes    []phaseEntry `json:"phaseTransitionTimestamps"`
	}
	condition struct {
		Type    string      `json:"type"`
		Status  string      `json:"status"`
		Reason  string      `json:"reason,omitempty"`
		Message string      `json:"message,omitempty"`
		Changed metav1.Time `json:"lastTransitionTime,omitempty"`
	}
	seenLink struct {
		Name    string `json:"name"`
		Address string `json:"ipAddress"`
	}
	lastMove struct {
		UID    types.UID `json:"migrationUid"`
		Reason string    `json:"failureReason"`
	}
	phaseEntry struct {
		Phase string      `json:"phase"`
		At    metav1.Time `json:"phaseTransitionTimestamp"`
	}

	migration struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              migrationSpec    `json:"spec"`
		Status            *migrationStatus `json:"status,omitempty"`
	}
	migrationSpec struct {
		Instance string            `json:"vmiName"`
		Nodes    map[string]string `json:"addedNodeSelector"`
	}
	migrationStatus struct {
		Phase      string      `json:"phase,omitempty"`
		Conditions []condition `json:"conditions,omitempty"`
	}

	kubeVirt struct {
		Spec struct {
			Configuration configuration `json:"configuration"`
		} `json:"spec"`
	}
	configuration struct {
		MachineType string `json:"machineType"`
		CPUModel    string `json:"cpuModel"`
		Developer   struct {
			Emulation bool `json:"useEmulation"`
		} `json:"developerConfiguration"`
	}
)

type (
	instanceSpec struct {
		Hostname     string              `json:"hostname,omitempty"`
		Domain       domain              `json:"domain"`
		Volumes      []volume            `json:"volumes"`
		Networks     []network           `json:"networks"`
		NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
		Affinity     *corev1.Affinity    `json:"affinity,omitempty"`
		Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
		Eviction     string              `json:"evictionStrategy,omitempty"`
		GraceSeconds *int64              `json:"terminationGracePeriodSeconds"`
	}
	domain struct {
		CPU       cpu          `json:"cpu"`
		Memory    memory       `json:"memory"`
		Resources *resources   `json:"resources,omitempty"`
		Machine   *machineType `json:"machine,omitempty"`
		Firmware  *firmware    `json:"firmware,omitempty"`
		Devices   devices      `json:"devices"`
	}
	cpu struct {
		Sockets int    `json:"sockets"`
		Cores   int    `json:"cores"`
		Threads int    `json:"threads"`
		Model   string `json:"model,omitempty"`
	}
	memory struct {
		Guest string `json:"guest"`
	}
	resources struct {
		Requests map[string]string `json:"requests"`
	}
	machineType struct {
		Type string `json:"type"`
	}
	firmware struct {
		KernelBoot *kernelBoot `json:"kernelBoot,omitempty"`
	}
	kernelBoot struct {
		Arguments string          `json:"kernelArgs"`
		Container kernelContainer `json:"container"`
	}
	kernelContainer struct {
		Image      string `json:"image"`
		PullSecret string `json:"imagePullSecret,omitempty"`
		PullPolicy string `json:"imagePullPolicy,omitempty"`
		Kernel     string `json:"kernelPath"`
		Initrd     string `json:"initrdPath"`
	}
	devices struct {
		Disks      []disk     `json:"disks"`
		Interfaces []nic      `json:"interfaces"`
		Random     *emptySpec `json:"rng"`
		Graphics   *bool      `json:"autoattachGraphicsDevice"`
	}
	disk struct {
		Name      string     `json:"name"`
		BootOrder *int64     `json:"bootOrder,omitempty"`
		Serial    string     `json:"serial,omitempty"`
		Cache     string     `json:"cache,omitempty"`
		IO        string     `json:"io,omitempty"`
		Disk      diskTarget `json:"disk"`
	}
	diskTarget struct {
		Bus      string `json:"bus"`
		ReadOnly bool   `json:"readonly,omitempty"`
	}
	nic struct {
		Name       string     `json:"name"`
		Masquerade *emptySpec `json:"masquerade,omitempty"`
		Bridge     *emptySpec `json:"bridge,omitempty"`
	}
	network struct {
		Name string     `json:"name"`
		Pod  *emptySpec `json:"pod"`
	}
	volume struct {
		Name      string         `json:"name"`
		Container *containerDisk `json:"containerDisk,omitempty"`
		Claim     *claimSource   `json:"persistentVolumeClaim,omitempty"`
		Secret    *secretSource  `json:"secret,omitempty"`
	}
	containerDisk struct {
		Image      string `json:"image"`
		PullSecret string `json:"imagePullSecret,omitempty"`
		PullPolicy string `json:"imagePullPolicy,omitempty"`
	}
	claimSource struct {
		Name string `json:"claimName"`
	}
	secretSource struct {
		Name  string `json:"secretName"`
		Label string `json:"volumeLabel"`
	}
	// emptySpec is a choice without settings: "masquerade: {}".
	emptySpec struct{}
)

// listAll selects everything.
var listAll = metav1.ListOptions{}

// Phases of instances and migrations, and types of conditions.
const (
	phaseRunning   = "Running"
	phaseSucceeded = "Succeeded"
	phaseFailed    = "Failed"

	conditionMigratable = "LiveMigratable"
	conditionScheduled  = "PodScheduled"
	conditionReady      = "Ready"
)

// find returns the condition of a type, nil if there is none.
func find(list []condition, kind string) *condition {
	for i := range list {
		if list[i].Type == kind {
			return &list[i]
		}
	}
	return nil
}
