//go:build !race

package labtest

// raceEnabled tells that this test was built without the race detector.
const raceEnabled = false
