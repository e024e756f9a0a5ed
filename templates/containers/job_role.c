/* Sets a variable in each task and job script of a user: `plugin VARIABLE VALUE`. Slurm loads it before Pyxis, which copies
 * the job's environment. A TaskProlog cannot do it: Slurm starts it inside of the container, and from 24.11 on by a program
 * that needs the machine's libraries. */
#include <slurm/spank.h>
#include <sys/types.h>

SPANK_PLUGIN(corral_job_role, 1)

int slurm_spank_user_init(spank_t job, int count, char **words)
{
    uid_t user;
    if (count != 2 || spank_get_item(job, S_JOB_UID, &user) != ESPANK_SUCCESS)
        return -1;
    return user == 0 || spank_setenv(job, words[0], words[1], 1) == ESPANK_SUCCESS ? 0 : -1;
}
