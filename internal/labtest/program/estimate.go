package program

import (
	"fmt"
	"strings"
	"time"
)

const (
	// measuredCores is the number of cores of the machine on which builds were measured.
	measuredCores = 2
	// usefulCores is the number of cores beyond which more are assumed not to help: downloads
	// and the linker do not use them. More than two were not measured.
	usefulCores = 8
)

// OnCores estimates how long a build takes on a number of cores, from its duration on two: 7
// minutes are 3.5 on four.
func OnCores(d time.Duration, cores int) time.Duration {
	return d * measuredCores / time.Duration(min(max(cores, 1), usefulCores))
}

// FirstBuilds estimates how long it takes to build programs for the first time, on a number
// of cores.
func FirstBuilds(programs []Built, cores int) time.Duration {
	var sum time.Duration
	for _, p := range programs {
		sum += p.FirstBuild
	}
	return OnCores(sum, cores)
}

// Describe lists programs with their versions: "etcd 3.6.8 and kwok 0.8.0".
func Describe(programs []Built) string {
	var list []string
	for _, p := range programs {
		name, _, _ := strings.Cut(p.Name, "@")
		list = append(list, name+" "+p.Version)
	}
	last := len(list) - 1
	if last == 0 {
		return list[0]
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
}

// Rough rounds a duration for reading: "10 seconds", "5 minutes".
func Rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d seconds", int(d.Seconds()))
	case d < 90*time.Second:
		return "a minute"
	}
	return fmt.Sprintf("%d minutes", int(d.Round(time.Minute).Minutes()))
}
