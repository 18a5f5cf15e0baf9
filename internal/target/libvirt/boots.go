package libvirt

import (
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// What boots cost, as docs/guides/images.md has it. Under KVM nothing was measured.
const (
	bootSmall        = 5 * time.Second // the small system, emulated
	bootCloud        = 90 * time.Second
	bootCloudCPU     = 2 * time.Minute
	bootCloudKVM     = 30 * time.Second
	basisMeasured    = "emulated, as measured"
	basisAssumedKVM  = "under KVM, assumed"
	basisSmallSystem = "small system, as measured"
)

// boots says how long VMs of each template of the target file boot. A template with a slash in it is the small system.
func boots(templates map[string]string, emulated bool) map[string]target.Boot {
	all := map[string]target.Boot{}
	for name, value := range templates {
		switch small := strings.Contains(value, "/"); {
		case small && emulated:
			all[name] = target.Boot{Alone: bootSmall, CPU: bootSmall, Basis: basisSmallSystem}
		case small:
			all[name] = target.Boot{Alone: bootSmall, Basis: basisSmallSystem}
		case emulated:
			all[name] = target.Boot{Alone: bootCloud, CPU: bootCloudCPU, Basis: basisMeasured}
		default:
			all[name] = target.Boot{Alone: bootCloudKVM, Basis: basisAssumedKVM}
		}
	}
	return all
}
