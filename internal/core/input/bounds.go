package input

import "fmt"

const (
	// MaxInputs bounds the inputs that are recorded for one workload and shown in its
	// template. A ConfigMap of the record stores 1 MiB for many workloads, and the API server
	// rejects one that is too large as a whole. A workload that asks for more must not harm
	// the others.
	MaxInputs = 256
	// MaxNames bounds the names of those inputs together. The API server doesn't check the
	// names in a pod template, so a single one could fill the object.
	MaxNames = 16 << 10
)

// Excess describes how inputs of these names are too many for one workload, empty when they
// aren't.
func Excess(ids []ID) string {
	if len(ids) > MaxInputs {
		return fmt.Sprintf("it uses or lists more than %d ConfigMaps and Secrets", MaxInputs)
	}
	length := 0
	for _, id := range ids {
		length += len(id.Name)
	}
	if length > MaxNames {
		return fmt.Sprintf("the names of the ConfigMaps and Secrets that it uses or lists take more than %d KiB", MaxNames>>10)
	}
	return ""
}
