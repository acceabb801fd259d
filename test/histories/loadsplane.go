package histories

// IsSettled reports whether Settle accepts the reason of Lockstep's last decision, or End at the
// last settlement. On a control plane, Lockstep may need another moment.
func (l *Loads) IsSettled(reason string, isEnd bool) bool {
	w := *l.workload
	switch isOld := len(l.old(w)) > 0; {
	case w.Repeats:
		return true
	case isEnd:
		return !isOld && (!reports(reason) || reason == "NotFollowed") || reason == reasonMissing
	default:
		return !isOld || reports(reason) || l.accepting
	}
}
